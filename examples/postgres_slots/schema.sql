-- A practice system on PostgreSQL: rooms with calendars, dated ownership, stock as moves.
--
-- What a reader should expect of it:
--   * times are UTC without a zone, while the database's own clock shows Asia/Kolkata;
--     consultations count seconds since 1970, and 0 there means "not yet";
--   * patients have UUIDs, articles long text codes, all else whole numbers from 1;
--   * an animal's owners are dated, have roles, and may be none;
--   * a calendar belongs to a room; a vet works in several rooms, two vets may share one;
--   * free times stand in Appointment as rows (State 0), beside those that follow from the roster;
--   * amounts have ten decimals, a draft has none, a credit note is negative;
--   * names are quoted and mixed in case; no foreign key, nothing that forbids overlaps.

CREATE TABLE "Contact" (
    "Id"         integer PRIMARY KEY,
    "FirstName"  text,
    "LastName"   text,                        -- '' for a company
    "Company"    text,
    "PhoneHome"  text,
    "PhoneMobile" text,
    "Fax"        text,
    "EMails"     text,                        -- several, parted by ';'
    "Street1"    text,
    "Street2"    text,
    "Zip"        text,
    "City"       text,
    "TermDays"   integer,                     -- how long this contact may take to pay
    "State"      text NOT NULL DEFAULT 'NEW', -- NEW ACTIVE DELETED
    "CreatedUtc" timestamp NOT NULL DEFAULT now(),
    "EditedUtc"  timestamp                    -- NULL until the first change
);

CREATE TABLE "Species" ("Id" integer PRIMARY KEY, "Code" text);
CREATE TABLE "Breed" ("Id" integer PRIMARY KEY, "SpeciesId" integer, "Name" text);
CREATE TABLE "Label" (                        -- what codes are called, in several languages
    "Table" text, "Key" text, "Lang" text, "Text" text,
    PRIMARY KEY ("Table", "Key", "Lang")
);

CREATE TABLE "Patient" (
    "PatientUUID"  uuid PRIMARY KEY,
    "Name"         text,
    "SpeciesId"    integer,
    "BreedId"      integer,
    "Sex"          smallint,                  -- 0 not known, 1 male, 2 female
    "Neutered"     smallint,                  -- -1 yes, 0 no
    "Born"         date,
    "Died"         date,
    "Coat"         text,
    "Chip No"      text,
    "Hide"         boolean,                   -- NULL is not hidden
    "CreatedEpoch" bigint NOT NULL            -- there is no column for changes
);

CREATE TABLE "Ownership" (
    "Id"        integer PRIMARY KEY,
    "Patient"   uuid NOT NULL,
    "Contact"   integer NOT NULL,
    "Role"      text NOT NULL,                -- OWNER CARER BREEDER
    "ValidFrom" date NOT NULL,
    "ValidTo"   date                          -- the first day on which it is over
);

CREATE TABLE "Weighing" ("Patient" uuid, "AtUtc" timestamp, "Grams" integer);
CREATE TABLE "Alert" ("Patient" uuid, "Order" integer, "Text" text);

CREATE TABLE "Staff" (
    "Id"     integer PRIMARY KEY,
    "Title"  text,
    "Name"   text,
    "LeftOn" date                             -- NULL while they work here
);
CREATE TABLE "StaffFunction" ("StaffId" integer, "Function" text);  -- VET SURGEON NURSE, several each

CREATE TABLE "Schedule" (                     -- the calendar of a room
    "Id"          integer PRIMARY KEY,
    "Room"        text,
    "SlotMinutes" integer NOT NULL
);
CREATE TABLE "StaffSchedule" ("StaffId" integer, "ScheduleId" integer);
CREATE TABLE "Roster" (                       -- when a room is open, day by day
    "ScheduleId" integer NOT NULL, "Day" date NOT NULL, "Opens" time NOT NULL, "Closes" time NOT NULL
);
CREATE TABLE "Leave" ("StaffId" integer, "FromUtc" timestamp NOT NULL, "ToUtc" timestamp);

CREATE TABLE "VisitType" (
    "Id" integer PRIMARY KEY, "Name" text, "Colour" text, "Online" boolean
);
CREATE TABLE "VisitTypeSchedule" ("TypeId" integer, "ScheduleId" integer, "Slots" integer);

CREATE SEQUENCE "AppointmentNo" START 100000;
CREATE TABLE "Appointment" (
    "Id"         serial PRIMARY KEY,
    "No"         text,                        -- 'V-100000'
    "State"      smallint,                    -- 0 free; 1 2 3 4 5 8 9: see Label
    "ScheduleId" integer,
    "StaffId"    integer,                     -- NULL on free rows and on some old ones
    "PatientId"  uuid,
    "TypeId"     integer,
    "StartsUtc"  timestamp NOT NULL,
    "Minutes"    integer,                     -- NULL: as its type in this schedule
    "Urgent"     char(1) DEFAULT 'Y',
    "Note"       text,
    "ForeignRef" text,
    "CreatedUtc" timestamp NOT NULL DEFAULT now()
);
CREATE TABLE "AppointmentLog" (
    "Id" bigserial PRIMARY KEY, "AppointmentId" integer, "Event" text, "AtEpoch" bigint
);

CREATE TABLE "Consultation" (
    "Id"             integer PRIMARY KEY,
    "AppointmentId"  integer,
    "PatientId"      uuid,
    "StaffId"        integer,
    "Closed"         boolean NOT NULL,
    "Weight"         text,                    -- how grave: LOW MID HIGH
    "StartedEpoch"   bigint NOT NULL,
    "ValidatedEpoch" bigint NOT NULL DEFAULT 0,
    "Summary"        text,
    "Diagnosis"      text,
    "Instructions"   text
);

CREATE TABLE "Invoice" (
    "Id"        integer PRIMARY KEY,
    "DocNo"     text,                         -- NULL for a draft
    "Kind"      char(3) NOT NULL,             -- INV, CRN
    "ContactId" integer NOT NULL,             -- who pays
    "State"     char(1) NOT NULL,             -- D draft, F final, X cancelled
    "IssuedUtc" timestamp,
    "Net"       numeric(20,10),               -- NULL for a draft
    "Tax"       numeric(20,10),
    "Currency"  text,
    "CreatedUtc" timestamp NOT NULL DEFAULT now()
);
CREATE TABLE "InvoiceLine" (
    "Id"        integer PRIMARY KEY,
    "InvoiceId" integer NOT NULL,
    "Text"      text,
    "Quantity"  numeric(20,10),
    "Price"     numeric(20,10),
    "TaxRate"   numeric(20,10),               -- a share: 0.21
    "Net"       numeric(20,10),
    "About"     text                          -- 'patient:4f1c...', 'contact:12', or nothing
);
CREATE TABLE "Payment" (
    "Id" integer PRIMARY KEY, "PaidUtc" timestamp, "Means" text, "Amount" numeric(20,10)
);
CREATE TABLE "Allocation" (                   -- which part of a payment is for which invoice
    "Id" integer PRIMARY KEY, "PaymentId" integer, "InvoiceId" integer, "Amount" numeric(20,10)
);

CREATE TABLE "Location" ("Id" integer PRIMARY KEY, "Parent" integer, "Name" text);
CREATE TABLE "Article" (
    "Code"      text PRIMARY KEY,             -- 'ART-000012-AMOX'
    "Name"      text,
    "GroupId"   integer,
    "Unit"      text,
    "Sale"      numeric(20,10),
    "Cost"      numeric(20,10),
    "Supplier"  text,
    "Hide"      boolean NOT NULL DEFAULT false,
    "EditedUtc" timestamp
);
CREATE TABLE "Minimum" ("ArticleCode" text, "LocationId" integer, "Quantity" numeric(20,10));
CREATE TABLE "Move" (
    "Id"          bigserial PRIMARY KEY,
    "ArticleCode" text NOT NULL,
    "From"        integer NOT NULL,
    "To"          integer NOT NULL,
    "Quantity"    numeric(20,10) NOT NULL,
    "Lot"         text,
    "Expires"     date,
    "AtUtc"       timestamp NOT NULL
);

-- indexes
CREATE UNIQUE INDEX "Ownership_now" ON "Ownership" ("Patient")
    WHERE "Role" = 'OWNER' AND "ValidTo" IS NULL;
CREATE INDEX "Ownership_Patient" ON "Ownership" ("Patient");
CREATE INDEX "Ownership_Contact" ON "Ownership" ("Contact");
CREATE INDEX "Weighing_Patient" ON "Weighing" ("Patient", "AtUtc");
CREATE INDEX "Alert_Patient" ON "Alert" ("Patient");
CREATE INDEX "Roster_Schedule" ON "Roster" ("ScheduleId", "Day");
CREATE INDEX "Leave_Staff" ON "Leave" ("StaffId");
CREATE INDEX "Appointment_Schedule" ON "Appointment" ("ScheduleId", "StartsUtc");
CREATE INDEX "Appointment_Staff" ON "Appointment" ("StaffId", "StartsUtc");
CREATE INDEX "Appointment_Ref" ON "Appointment" ("ForeignRef");
CREATE INDEX "Appointment_Patient" ON "Appointment" ("PatientId");
CREATE INDEX "AppointmentLog_Appointment" ON "AppointmentLog" ("AppointmentId");
CREATE INDEX "Consultation_Appointment" ON "Consultation" ("AppointmentId");
CREATE INDEX "Invoice_Contact" ON "Invoice" ("ContactId");
CREATE INDEX "InvoiceLine_Invoice" ON "InvoiceLine" ("InvoiceId");
CREATE INDEX "Allocation_Invoice" ON "Allocation" ("InvoiceId");
CREATE INDEX "Move_Article" ON "Move" ("ArticleCode");
CREATE INDEX "Minimum_Article" ON "Minimum" ("ArticleCode");
