// What the generated types say of an appointment read again, a repeated booking, and refusals.
import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./clinic.mjs";

type Schemas = components["schemas"];

const { BASE, KEY = "", APPOINTMENT = "" } = process.env;
const clinic = createClient<paths>({ baseUrl: BASE, headers: { "X-API-Key": KEY } });

function book(body: Schemas["CreateAppointmentRequest"], key: string) {
  return clinic.POST("/appointments", { params: { header: { "Idempotency-Key": key } }, body });
}

const read = await clinic.GET("/appointments/{id}", { params: { path: { id: APPOINTMENT } } });
const made: Schemas["Appointment"] | undefined = read.data;
if (!made?.clientId || !made.patientId || !made.vetId || !made.scheduledAt) throw new Error("none");
const { clientId, patientId, vetId, scheduledAt } = made;
const body = { clientId, patientId, vetId, scheduledAt };

const taken = await book(body, randomUUID());
const conflict: Schemas["Error"] | undefined = taken.error;
const unknown = await clinic.GET("/appointments/{id}", { params: { path: { id: randomUUID() } } });
const notFound: Schemas["Error"] | undefined = unknown.error;
const wrong = await book({ ...body, scheduledAt: "tomorrow" }, randomUUID());
const problems = wrong.error && "errors" in wrong.error ? wrong.error.errors : [];
const page = await clinic.GET("/patients", { params: { query: { clientId, limit: 1 } } });
const animal: Schemas["Patient"] | undefined = page.data?.[0];

console.log(
  JSON.stringify({
    status: made.status,
    conflict: [taken.response.status, conflict?.message],
    notFound: [unknown.response.status, notFound?.message],
    wrong: [wrong.response.status, problems.map((each) => each.field)],
    animal: animal?.clientId === clientId,
  }),
);
