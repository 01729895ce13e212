-- A practice system on MariaDB that keeps everything as entities, attributes and values.
--
-- What a reader should expect of it:
--   * one table for every party (people, animals, homes, kinds of visit), one for every act;
--   * most attributes are rows of party_fields, act_fields, product_fields: text with a type tag;
--   * times are the wall clock of Europe/Brussels, without a zone; the server runs in UTC;
--   * '1000-01-01' and '0000-00-00' mean "no date", and so does NULL;
--   * amounts are text: '1.234,50';
--   * flags are BIT(1); their default is off, so a row inserted without `active` is a deleted one;
--   * no foreign key, and nothing that forbids two bookings at one time.

CREATE TABLE parties (
    party_id       INT AUTO_INCREMENT PRIMARY KEY,
    kind           CHAR(4) NOT NULL,        -- CUST PET VET SUPP HOME TYPE
    name           VARCHAR(80) CHARACTER SET latin1,  -- 'Last,First'; a company has no comma
    active         BIT(1) NOT NULL DEFAULT b'0',
    `date-created` DATETIME NOT NULL DEFAULT '1000-01-01 00:00:00',
    `date-changed` DATETIME NULL            -- NULL or zeros until the first change
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE links (                        -- who lives where, and who heads a home; dated
    link_id INT AUTO_INCREMENT PRIMARY KEY,
    `from`  INT NOT NULL,
    `to`    INT NOT NULL,                   -- a HOME
    role    VARCHAR(10) NOT NULL,           -- pet LIVES_IN home; customer HEAD or MEMBER of home
    since   DATE NOT NULL DEFAULT '1000-01-01',
    until   DATE NOT NULL DEFAULT '0000-00-00'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE party_fields (
    field_id INT AUTO_INCREMENT PRIMARY KEY,
    party_id INT NOT NULL,
    `key`    VARCHAR(16) NOT NULL,
    type     CHAR(1) NOT NULL,              -- S text, D ISO date, E date as 31/12/2020, N number,
                                            -- G grams
    value    VARCHAR(255)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE contacts (
    contact_id     INT AUTO_INCREMENT PRIMARY KEY,
    party_id       INT NOT NULL,
    kind           VARCHAR(6) NOT NULL,     -- PHONE FAX EMAIL ADDR
    value          VARCHAR(80),             -- of an address: the first line
    `line-2`       VARCHAR(80),
    postcode       VARCHAR(10),
    town           VARCHAR(60),
    preferred      BIT(1) NOT NULL DEFAULT b'0',
    active         BIT(1) NOT NULL DEFAULT b'0',
    `date-created` DATETIME NOT NULL DEFAULT '1000-01-01 00:00:00'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE lookups (
    list  VARCHAR(10) NOT NULL,
    code  VARCHAR(10) NOT NULL,
    label VARCHAR(40),
    PRIMARY KEY (list, code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE acts (
    act_id         INT AUTO_INCREMENT PRIMARY KEY,
    type           VARCHAR(12) NOT NULL,    -- 'appointment', 'visit'
    number         VARCHAR(12),             -- 'A-000123', counted in `numbers`
    day            DATE NOT NULL,
    time           TIME NOT NULL,
    length         VARCHAR(8),              -- '00:30:00'; NULL: as long as its kind
    status         CHAR(4),                 -- CONF ARRI BUSY DONE CANC MISS; NULL: planned
    urgent         BIT(1),
    active         BIT(1) NOT NULL DEFAULT b'0',
    title          VARCHAR(500) CHARACTER SET latin1,
    follows        INT,                     -- of a visit: its appointment
    `ext-ref`      VARCHAR(16),             -- what another program calls it
    `date-created` DATETIME NOT NULL DEFAULT '1000-01-01 00:00:00'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE participations (               -- who takes part in an act, with its times once more
    participation_id INT AUTO_INCREMENT PRIMARY KEY,
    act_id           INT NOT NULL,
    role             CHAR(4) NOT NULL,      -- PET VET TYPE
    party_id         INT NOT NULL,
    `act-start`      DATETIME NOT NULL,
    `act-end`        DATETIME,
    active           BIT(1) NOT NULL DEFAULT b'0'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE act_fields (
    field_id INT AUTO_INCREMENT PRIMARY KEY,
    act_id   INT NOT NULL,
    `key`    VARCHAR(16) NOT NULL,
    type     CHAR(1) NOT NULL,
    value    VARCHAR(1000)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE calendar (                     -- what the desk's day view shows
    entry_id INT AUTO_INCREMENT PRIMARY KEY,
    act_id   INT NOT NULL,
    party_id INT NOT NULL,
    `left`   TIME NOT NULL,                 -- where its box begins
    `right`  TIME NOT NULL,
    day      DATE NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE numbers (
    `key`  VARCHAR(10) PRIMARY KEY,
    `last` INT NOT NULL                     -- the last number given
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE work_hours (
    hour_id  INT AUTO_INCREMENT PRIMARY KEY,
    party_id INT NOT NULL,
    `day-no` TINYINT NOT NULL,              -- 0 Sunday to 6 Saturday
    `from`   TIME NOT NULL,
    `to`     TIME NOT NULL,                 -- not after `from`: on the next day
    active   BIT(1) NOT NULL DEFAULT b'0'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE absences (
    absence_id  INT AUTO_INCREMENT PRIMARY KEY,
    party_id    INT,                        -- NULL: the house is closed
    `first-day` DATE NOT NULL,
    `last-day`  DATE NOT NULL DEFAULT '1000-01-01'  -- zeros: nobody knows yet
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE ledger (                       -- invoices and credit notes
    site           CHAR(3) NOT NULL,
    number         INT NOT NULL,
    party_id       INT NOT NULL,            -- who pays
    status         CHAR(1),                 -- O open, P partly paid, F paid, X cancelled, D draft
    day            DATE NOT NULL DEFAULT '1000-01-01',
    time           TIME NOT NULL DEFAULT '00:00:00',
    net            VARCHAR(14),             -- '1.234,50'
    vat            VARCHAR(14),
    gross          VARCHAR(14),
    `date-created` DATETIME NOT NULL DEFAULT '1000-01-01 00:00:00',
    PRIMARY KEY (site, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE ledger_lines (
    line_id    INT AUTO_INCREMENT PRIMARY KEY,
    site       CHAR(3) NOT NULL,
    number     INT NOT NULL,
    `text`     VARCHAR(80) CHARACTER SET latin1,
    quantity   VARCHAR(10),
    price      VARCHAR(14),
    `vat-rate` VARCHAR(6),
    total      VARCHAR(14),
    party_id   INT                          -- the animal
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE ledger_payments (
    payment_id INT AUTO_INCREMENT PRIMARY KEY,
    site       CHAR(3) NOT NULL,
    number     INT NOT NULL,
    day        DATE NOT NULL DEFAULT '1000-01-01',
    method     CHAR(1),                     -- B Bancontact, C cash, T transfer
    amount     VARCHAR(14)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE ledger_terms (                 -- when an invoice is due stands here alone
    site     CHAR(3) NOT NULL,
    number   INT NOT NULL,
    `due-on` DATE NOT NULL DEFAULT '0000-00-00',
    PRIMARY KEY (site, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE products (
    code           VARCHAR(8) PRIMARY KEY,
    name           VARCHAR(80) CHARACTER SET latin1,
    active         BIT(1) NOT NULL DEFAULT b'0',
    `sale-price`   VARCHAR(14),
    `cost-price`   VARCHAR(14),
    supplier       INT,
    `date-changed` DATETIME NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE product_fields (
    field_id INT AUTO_INCREMENT PRIMARY KEY,
    code     VARCHAR(8) NOT NULL,
    `key`    VARCHAR(16) NOT NULL,
    type     CHAR(1) NOT NULL,
    value    VARCHAR(255)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE batches (
    batch_id INT AUTO_INCREMENT PRIMARY KEY,
    product  VARCHAR(8) NOT NULL,
    number   VARCHAR(20),
    `left`   DECIMAL(10,2) NOT NULL,        -- how much is left of it
    expires  DATE NOT NULL DEFAULT '0000-00-00'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- indexes
ALTER TABLE parties ADD KEY by_kind (kind);
ALTER TABLE links ADD KEY by_from (`from`, role), ADD KEY by_to (`to`, role);
ALTER TABLE party_fields ADD KEY by_party (party_id, `key`);
ALTER TABLE contacts ADD KEY by_party (party_id, kind);
ALTER TABLE acts ADD KEY by_day (type, day), ADD KEY by_ref (`ext-ref`), ADD KEY by_follows (follows);
ALTER TABLE participations ADD KEY by_act (act_id, role),
    ADD KEY by_party (party_id, role, `act-start`);
ALTER TABLE act_fields ADD KEY by_act (act_id, `key`);
ALTER TABLE calendar ADD KEY by_act (act_id), ADD KEY by_day (day, party_id);
ALTER TABLE work_hours ADD KEY by_party (party_id);
ALTER TABLE absences ADD KEY by_party (party_id, `first-day`);
ALTER TABLE ledger ADD KEY by_party (party_id);
ALTER TABLE ledger_lines ADD KEY by_bill (site, number);
ALTER TABLE ledger_payments ADD KEY by_bill (site, number);
ALTER TABLE product_fields ADD KEY by_product (code, `key`);
ALTER TABLE batches ADD KEY by_product (product);
