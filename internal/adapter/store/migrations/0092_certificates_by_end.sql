-- +goose NO TRANSACTION
-- +goose Up

-- Metrics count the certificates that end soon.
{{postgres}}CREATE INDEX {{concurrently}} issued_certificates_by_end ON issued_certificates (not_after);
{{sqlite}}CREATE INDEX IF NOT EXISTS issued_certificates_by_end ON issued_certificates (not_after);
