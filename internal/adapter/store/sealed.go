// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/vault"
)

// Sealed reads and replaces the sealed records of all tables. It implements vault.Records.
type Sealed struct{ *DB }

var _ vault.Records = Sealed{}

// sealedColumn is a column with sealed records and the place of its records.
type sealedColumn struct {
	table, column string
	row           string // SQL: the row of the place, unique in the table
	purpose       string
	where         string                       // SQL: the records that the ring has sealed; "": all
	place         func(row string) vault.Place // if the purpose is not enough
}

// softwareKeys is SQL: private keys that the ring has sealed. Other holders do not use it.
const softwareKeys = "holder = '" + vault.SoftwareName + "'"

// sealedColumns are all columns that hold a sealed record and nothing else. What is sealed inside of
// other records, in objects and in cookies is not here: it ends by itself or is written anew. A test
// compares this table with the places that the program seals for.
var sealedColumns = []sealedColumn{
	{table: "authorities", column: "sealed", row: "name", purpose: "private key", where: softwareKeys},
	{table: "authority_delegates", column: "sealed", row: "name || '/' || generation", purpose: "private key", where: softwareKeys},
	{table: "keys", column: "sealed", row: "id", purpose: "private key", where: softwareKeys},
	{table: "signing_keys", column: "sealed", row: "id", purpose: "token signing key"},
	{table: "oath_tokens", column: "sealed", row: "serial_key", purpose: "one-time password token"},
	{table: "devices", column: "sealed", row: "kid", purpose: "mobile device"},
	{table: "browsers", column: "sealed", row: "id", purpose: "browser"},
	{table: "passkeys", column: "sealed", row: "id", purpose: "passkey"},
	{table: "device_kinits", column: "sealed", row: "kid", purpose: "device initialization"},
	{table: "device_nonces", column: "sealed", row: "kid", purpose: "device verification"},
	{table: "device_service_keys", column: "sealed", row: "algorithm", purpose: "device service key"},
	{table: "former_device_service_keys", column: "sealed", row: "algorithm", purpose: "device service key"},
	{table: "webhooks", column: "sealed", row: "id", purpose: "webhook"},
	{table: "reports", column: "sealed", row: "number", purpose: "report"},
	{table: "approval_requests", column: "sealed", row: "id", purpose: "approval request"},
	{table: "outbox", column: "sealed", row: "message_id", purpose: "message"},
	{table: "captured_messages", column: "sealed", row: "message_id", purpose: "captured message"},
	{table: "confirmation_contents", column: "offline", row: "id", purpose: "confirmation"},
	{table: "confirmation_answers", column: "sealed", row: "id", purpose: "confirmation"},
	{table: "operations", column: "secret", row: "id", purpose: "operation"},
	{table: "operations", column: "answer", row: "id", purpose: "operation"},
	{table: "answers", column: "body", row: "caller || '/' || name", purpose: "kept answer"},
	// By the name of the object: a renewal gives a document the object of another record.
	{table: "documents", column: "sealed_key", row: "blob", place: func(row string) vault.Place {
		return vault.Place{Purpose: "object key", Table: "objects", Row: row, Column: "head"}
	}},
	{table: "one_time_codes", column: "sealed_key", row: "purpose || '|' || user_id || ' ' || type || ' ' || normal", place: func(row string) vault.Place {
		purpose, row, _ := strings.Cut(row, "|")
		return vault.Place{Purpose: "one-time code: " + purpose, Table: "one_time_codes", Row: row, Column: "key"}
	}},
}

// Columns implements vault.Records.
func (Sealed) Columns() (list []vault.Column) {
	for _, c := range sealedColumns {
		place := c.place
		if place == nil {
			place = func(row string) vault.Place {
				return vault.Place{Purpose: c.purpose, Table: c.table, Row: row, Column: c.column}
			}
		}
		list = append(list, vault.Column{Table: c.table, Column: c.column, Place: place})
	}
	return list
}

// sealedOf returns what the table above says of a column.
func sealedOf(c vault.Column) sealedColumn {
	for _, s := range sealedColumns {
		if s.table == c.Table && s.column == c.Column {
			return s
		}
	}
	panic("store: no sealed column " + c.Name())
}

// rowOf returns the SQL of the row of a column.
func rowOf(c vault.Column) string { return sealedOf(c).row }

// from returns the SQL of the records of a column that the ring has sealed. A condition may follow after
// AND.
func from(c vault.Column) string {
	return " FROM " + c.Table + " WHERE " + cmp.Or(sealedOf(c).where, "TRUE") + " AND "
}

// under is SQL: a record begins with the argument of a number.
func under(column string, head []byte, argument int) string {
	return fmt.Sprintf("substr(%s, 1, %d) = $%d", column, len(head), argument)
}

func scanSealed(r row) (s vault.SealedRecord, err error) {
	err = r.Scan(&s.Row, &s.Sealed)
	s.ID = s.Row
	return s, err
}

// CountUnder implements vault.Records.
func (s Sealed) CountUnder(ctx context.Context, c vault.Column, head []byte) (int64, error) {
	list, err := allUnprepared(ctx, s.DB, scalar[int64], "SELECT COUNT(*)"+from(c)+under(c.Column, head, 1), head)
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

// OneUnder implements vault.Records.
func (s Sealed) OneUnder(ctx context.Context, c vault.Column, head []byte) (vault.SealedRecord, bool, error) {
	return first(allUnprepared(ctx, s.DB, scanSealed,
		"SELECT "+rowOf(c)+", "+c.Column+from(c)+under(c.Column, head, 1)+" LIMIT 1", head))
}

// OneUnderNone implements vault.Records. Empty records are not sealed.
func (s Sealed) OneUnderNone(ctx context.Context, c vault.Column, heads [][]byte) (vault.SealedRecord, bool, error) {
	query, args := "SELECT "+rowOf(c)+", "+c.Column+from(c)+"length("+c.Column+") > 0", []any{}
	for i, head := range heads {
		query += " AND NOT " + under(c.Column, head, i+1)
		args = append(args, head)
	}
	return first(allUnprepared(ctx, s.DB, scanSealed, query+" LIMIT 1", args...))
}

// NotUnder implements vault.Records.
func (s Sealed) NotUnder(ctx context.Context, c vault.Column, head []byte, after string, limit int) ([]vault.SealedRecord, error) {
	return allUnprepared(ctx, s.DB, scanSealed, "SELECT "+rowOf(c)+", "+c.Column+from(c)+
		"length("+c.Column+") > 0 AND NOT "+under(c.Column, head, 1)+" AND "+rowOf(c)+" > $2 ORDER BY 1 LIMIT $3", head, after, int64(limit))
}

// Swap implements vault.Records.
func (s Sealed) Swap(ctx context.Context, c vault.Column, r vault.SealedRecord, sealed []byte) (bool, error) {
	n, err := s.exec(ctx, swap(c), r.ID, r.Sealed, sealed)
	return n == 1, err
}

// swap returns the statement of Swap. Its condition of the length is that of the index documents_by_object: empty records are not
// sealed, and most documents have one.
func swap(c vault.Column) string {
	return "UPDATE " + c.Table + " SET " + c.Column + " = $3 WHERE " + rowOf(c) + " = $1 AND " + c.Column + " = $2 AND length(" + c.Column + ") > 0"
}

func first[T any](list []T, err error) (value T, found bool, _ error) {
	if err != nil || len(list) == 0 {
		return value, false, err
	}
	return list[0], true, nil
}

// MasterKeys stores which master keys the database was used with, and which processes have them. It
// implements vault.KeyStore.
type MasterKeys struct{ *DB }

var _ vault.KeyStore = MasterKeys{}

// MasterKeys implements vault.KeyStore.
func (s MasterKeys) MasterKeys(ctx context.Context) ([]vault.MasterKey, error) {
	return all(ctx, s.DB, func(r row) (k vault.MasterKey, err error) {
		err = r.Scan(&k.ID, &k.Canary, (*timeField)(&k.CreatedAt), (*timeField)(&k.SealedAt))
		return k, err
	}, "SELECT id, canary, created_at, sealed_at FROM master_keys ORDER BY created_at, id")
}

// AddMasterKey implements vault.KeyStore.
func (s MasterKeys) AddMasterKey(ctx context.Context, k vault.MasterKey) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO master_keys (id, canary, created_at, sealed_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		k.ID, k.Canary, millis(k.CreatedAt), millis(k.SealedAt))
	return n == 1, err
}

// PutProcess implements vault.KeyStore.
func (s MasterKeys) PutProcess(ctx context.Context, p vault.Process) error {
	ids, err := json.Marshal(p.IDs)
	if err != nil {
		return err
	}
	return s.Unit(ctx, func(ctx context.Context) error {
		if _, err := s.exec(ctx, `INSERT INTO processes (id, host, version, active, ids, seen_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET active = excluded.active, ids = excluded.ids, seen_at = excluded.seen_at`,
			p.ID, p.Host, p.Version, p.Active, string(ids), millis(p.SeenAt)); err != nil {
			return err
		}
		_, err := s.exec(ctx, "UPDATE master_keys SET sealed_at = $2 WHERE id = $1 AND sealed_at < $2", p.Active, millis(p.SeenAt))
		return err
	})
}

// RemoveProcesses implements vault.KeyStore.
func (s MasterKeys) RemoveProcesses(ctx context.Context, id string, before time.Time) error {
	_, err := s.exec(ctx, "DELETE FROM processes WHERE id = $1 OR seen_at < $2", id, millis(before))
	return err
}

// Processes implements vault.KeyStore.
func (s MasterKeys) Processes(ctx context.Context) ([]vault.Process, error) {
	return all(ctx, s.DB, func(r row) (p vault.Process, err error) {
		var ids string
		if err := r.Scan(&p.ID, &p.Host, &p.Version, &p.Active, &ids, (*timeField)(&p.SeenAt)); err != nil {
			return p, err
		}
		return p, json.Unmarshal([]byte(ids), &p.IDs)
	}, "SELECT id, host, version, active, ids, seen_at FROM processes ORDER BY host, id")
}

// onlyHeads selects sealed documents of whose keys only the heads of the objects know. $1 is the last
// time of their uploads.
const onlyHeads = " FROM documents WHERE state = 1 AND uploaded_at <= $1 AND blob LIKE '%.sealed' AND length(sealed_key) = 0"

// StoredBefore returns how many documents that are still stored, and whose keys were not sealed anew,
// were uploaded until a time.
func (s MasterKeys) StoredBefore(ctx context.Context, at time.Time) (int64, error) {
	n, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*)"+onlyHeads, millis(at))
	return n, err
}

// StoredDocument is a document by its row and by the name of its object.
type StoredDocument struct {
	ID, Bytes string
	Head      []byte // the head of the object if its row has it; otherwise empty
}

// OnlyHeads returns the documents that StoredBefore counts, by ID from after on. head is the length of the head
// of an object in bytes.
func (s MasterKeys) OnlyHeads(ctx context.Context, at time.Time, after string, limit, head int) ([]StoredDocument, error) {
	return all(ctx, s.DB, func(r row) (d StoredDocument, err error) {
		err = r.Scan(&d.ID, &d.Bytes, &d.Head)
		return d, err
	}, "SELECT id, blob, substr(content, 1, $4)"+onlyHeads+" AND id > $2 ORDER BY id LIMIT $3", millis(at), after, int64(limit), int32(head))
}

// IsStored reports whether a document is still stored.
func (s MasterKeys) IsStored(ctx context.Context, d StoredDocument) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT 1 FROM documents WHERE id = $1 AND state = 1", d.ID)
	return found, err
}

// PutObjectKey stores the key of a document that was sealed anew, if the document is still stored.
func (s MasterKeys) PutObjectKey(ctx context.Context, d StoredDocument, sealed []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE documents SET sealed_key = $3 WHERE id = $1 AND blob = $2 AND state = 1 AND length(sealed_key) = 0", d.ID, d.Bytes, sealed)
	return n == 1, err
}

// ObjectKey implements blob.Keys.
func (s MasterKeys) ObjectKey(ctx context.Context, name string) ([]byte, error) {
	key, _, err := one(ctx, s.DB, scalar[[]byte], "SELECT sealed_key FROM documents WHERE blob = $1 AND length(sealed_key) > 0", name)
	return key, err
}
