-- One table per thing, English names, every time in UTC; logins, moves and prices beside them.
CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, password_digest TEXT,
  name TEXT, role TEXT, last_sign_in_at TEXT, created_at TEXT NOT NULL);
CREATE TABLE veterinarians (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users, first_name TEXT,
  last_name TEXT, active INTEGER NOT NULL DEFAULT 1);
CREATE TABLE clients (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, phone TEXT, email TEXT,
  street TEXT, zip TEXT, city TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE pets (id INTEGER PRIMARY KEY, client_id INTEGER NOT NULL REFERENCES clients, name TEXT,
  species TEXT, breed TEXT, gender TEXT, neutered INTEGER, date_of_birth TEXT, color TEXT, weight REAL,
  microchip TEXT, deceased_on TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE appointment_types (id INTEGER PRIMARY KEY, name TEXT NOT NULL, duration_minutes INTEGER);
CREATE TABLE appointments (id INTEGER PRIMARY KEY, pet_id INTEGER NOT NULL REFERENCES pets,
  veterinarian_id INTEGER NOT NULL REFERENCES veterinarians,
  appointment_type_id INTEGER REFERENCES appointment_types, starts_at TEXT NOT NULL,
  ends_at TEXT NOT NULL, status TEXT NOT NULL, urgent INTEGER NOT NULL DEFAULT 0, reason TEXT,
  created_by_id INTEGER REFERENCES users, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE medical_records (id INTEGER PRIMARY KEY, appointment_id INTEGER REFERENCES appointments,
  pet_id INTEGER NOT NULL REFERENCES pets, veterinarian_id INTEGER REFERENCES veterinarians,
  visited_at TEXT, signed_at TEXT, diagnosis TEXT, created_at TEXT NOT NULL);
CREATE TABLE invoices (id INTEGER PRIMARY KEY, number TEXT, client_id INTEGER REFERENCES clients,
  status TEXT, issued_at TEXT, due_on TEXT, subtotal NUMERIC, tax NUMERIC, total NUMERIC,
  created_at TEXT NOT NULL);
CREATE TABLE invoice_items (id INTEGER PRIMARY KEY, invoice_id INTEGER REFERENCES invoices,
  pet_id INTEGER REFERENCES pets, description TEXT, quantity NUMERIC, unit_price NUMERIC,
  tax_rate NUMERIC, amount NUMERIC);
CREATE TABLE payments (id INTEGER PRIMARY KEY, invoice_id INTEGER REFERENCES invoices, paid_at TEXT,
  amount NUMERIC, method TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category TEXT, sku TEXT, unit TEXT,
  quantity_on_hand INTEGER, reorder_level INTEGER, expiry_date TEXT, retail_price NUMERIC,
  cost_price NUMERIC, updated_at TEXT);
CREATE TABLE stock_movements (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products,
  name TEXT, quantity INTEGER, moved_at TEXT);
CREATE TABLE price_lists (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products, name TEXT,
  price NUMERIC, valid_from TEXT);
CREATE TABLE working_hours (id INTEGER PRIMARY KEY, veterinarian_id INTEGER REFERENCES veterinarians,
  weekday INTEGER, starts_at TEXT, ends_at TEXT);
