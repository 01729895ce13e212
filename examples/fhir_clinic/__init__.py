"""A clinic on a FHIR server: a real product's interface, filled by a script."""
