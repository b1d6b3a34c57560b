// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// Trouble is why a database cannot be used, for programs that say what to do about it.
type Trouble int

// Troubles. Each has another remedy.
const (
	OtherTrouble     Trouble = iota
	NotListening             // nothing listens at the address
	UnknownHost              // the name of the server has no address
	Silent                   // the server does not answer
	WrongPassword            // of the role
	NotAdmitted              // pg_hba.conf admits no such client, or another user of the system
	NoSuchRole               // the role does not exist
	NoSuchDatabase           // the database does not exist
	NotPermitted             // the role may not use the tables or the schema
	UnknownAuthority         // the certificate of the server is of an authority that is not known
	WrongCertificate         // the certificate of the server has another name, or has ended
	NoTLS                    // the server does not offer TLS, or wants it
	Full                     // too many connections
	DamagedFile              // SQLite: the file is damaged, or is not a database
	ClosedFile               // SQLite: the file or its directory may not be opened
	NotWholeOwner            // the tables belong to another role
	DiskFull                 // no space is left
)

// Codes of PostgreSQL that are troubles (manual, appendix A).
var troubles = map[string]Trouble{
	"28P01": WrongPassword, "28000": NotAdmitted, "3D000": NoSuchDatabase, "42501": NotPermitted,
	pgTooManyConnections: Full, "53100": DiskFull,
}

// TroubleOf returns the trouble that an error of this package is about.
func TroubleOf(err error) Trouble {
	text := err.Error()
	if code := postgresCode(err); code != "" {
		t := troubles[code]
		switch {
		case t == NotPermitted && strings.Contains(text, "must be owner"):
			return NotWholeOwner
		case t == NotAdmitted && strings.Contains(text, "does not exist"):
			return NoSuchRole
		case t == NotAdmitted && (strings.Contains(text, "no encryption") || strings.Contains(text, "SSL off")):
			return NoTLS
		}
		return t
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return UnknownAuthority
	case errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &verify):
		return WrongCertificate
	case strings.Contains(text, "server refused TLS connection"):
		return NoTLS
	case errors.As(err, &dns):
		return UnknownHost
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT) && strings.Contains(text, "dial unix"):
		return NotListening
	case strings.Contains(text, "file is not a database"), strings.Contains(text, "malformed"), strings.Contains(text, "SQLITE_CORRUPT"), strings.Contains(text, "SQLITE_NOTADB"):
		return DamagedFile
	case errors.Is(err, fs.ErrPermission), strings.Contains(text, "unable to open database file"), strings.Contains(text, "readonly database"):
		return ClosedFile
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "disk is full"):
		return DiskFull
	}
	var wait net.Error
	if errors.As(err, &wait) && wait.Timeout() {
		return Silent
	}
	return OtherTrouble
}

// CheckFile returns an error if the file of a SQLite database is damaged, as far as is known until ctx ends. For
// PostgreSQL it returns nil: the server checks its files.
func (db *DB) CheckFile(ctx context.Context) error {
	if db.Engine() != "sqlite" {
		return nil
	}
	err := db.checkFile(ctx)
	if ctx.Err() != nil {
		return nil // a large file
	}
	return err
}

// OtherOwner returns a role that owns a table of the schema while the role of this process does not belong to it, or
// "". Such tables cannot be migrated, and the audit log gets no new partitions.
func (db *DB) OtherOwner(ctx context.Context) (string, error) {
	if db.Engine() == "sqlite" {
		return "", nil
	}
	owner, _, err := one(ctx, db, scalar[string], `SELECT tableowner FROM pg_catalog.pg_tables
		WHERE schemaname = current_schema() AND NOT pg_has_role(current_user, tableowner, 'MEMBER') ORDER BY tableowner LIMIT 1`)
	return owner, err
}
