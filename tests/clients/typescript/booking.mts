// Books with the types that were generated from the document.
import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./clinic.mjs";

const { BASE, KEY = "", VET = "", CLIENT = "", PATIENT = "", DAY = "" } = process.env;
const clinic = createClient<paths>({ baseUrl: BASE, headers: { "X-API-Key": KEY } });

const types = await clinic.GET("/appointments/types");
const appointmentTypeId = types.data?.[0]?.id;
const slots = await clinic.GET("/appointments/available-slots", {
  params: { query: { vetId: VET, date: DAY, appointmentTypeId } },
});
const scheduledAt = slots.data?.[0]?.startTime;
if (!scheduledAt) throw new Error(`no free time: ${slots.error?.message}`);

const body: components["schemas"]["CreateAppointmentRequest"] = {
  clientId: CLIENT,
  patientId: PATIENT,
  vetId: VET,
  appointmentTypeId,
  scheduledAt,
};
const key = randomUUID();
const booked = await clinic.POST("/appointments", {
  params: { header: { "Idempotency-Key": key } },
  body,
});
if (booked.data) {
  console.log("booked", booked.data.id, booked.data.status);
} else if ("errors" in booked.error) {
  console.log("refused:", booked.error.errors.map((each) => `${each.field} ${each.problem}`));
} else {
  console.log("refused:", booked.error.message);
}
