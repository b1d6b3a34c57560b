// SPDX-License-Identifier: Apache-2.0

// Package report stores reports of verifications under numbers, so that a printed report leads to the stored one. Begin with
// [Service.Keep] and [Service.Find]. It knows neither what a report says nor the documents.
package report

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

const (
	// MostOfUser and MostBytes bound what a user stores, in reports and in bytes of their content.
	MostOfUser = 10_000
	MostBytes  = 128 << 20
	// CheckLength is how many characters of the digest of a document open its report.
	CheckLength = 10

	maxName  = 255 // characters of the name of a file
	attempts = 8   // to find a free number
)

// New is a report to store.
type New struct {
	Name    string // of the file
	Verdict string
	// Digest is the digest of the document in hexadecimal. Its beginning opens the report, together with the number.
	Digest  string
	Content []byte
}

// Info describes a stored report.
type Info struct {
	Number    string
	UserID    string // of the person who stored it
	Name      string
	Verdict   string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Report is a stored report.
type Report struct {
	Info
	Content []byte
}

// Record is a report as it is stored.
type Record struct {
	Info
	Bytes  int64 // of the content
	Sealed []byte
}

// Position is where a report is in the list of the newest. The zero value is before all.
type Position struct {
	At     time.Time
	Number string
}

// Store stores reports.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	// AddReport adds a report. It returns false if the number is taken.
	AddReport(ctx context.Context, r Record) (bool, error)
	// UsageOfReports returns how many reports a user has, and their bytes.
	UsageOfReports(ctx context.Context, userID string) (n, bytes int64, err error)
	Report(ctx context.Context, number string) (Record, bool, error)
	// NewestReports returns up to n reports of a user without their content, the newest first, after a position.
	NewestReports(ctx context.Context, userID string, older Position, n int, now time.Time) ([]Info, error)
	DeleteReport(ctx context.Context, userID, number string) (bool, error)
	SweepReports(ctx context.Context, now time.Time) error
}

// Sealer seals reports; *vault.Ring satisfies it.
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Service stores reports. All fields are set before its first use.
type Service struct {
	Store Store
	Vault Sealer
	Now   func() time.Time
	Rand  io.Reader
	Life  time.Duration // of a report; 0: none is stored
}

// sealed is the sealed part of a record.
type sealed struct {
	Check   string // the beginning of the digest
	Content []byte
}

func place(number string) vault.Place {
	return vault.Place{Purpose: "report", Table: "reports", Row: number, Column: "sealed"}
}

// Keep stores reports of a caller, all or none, and returns their descriptions. Faults: wrong_operation if the installation
// stores none, access_denied for a caller who is not signed in, invalid_object_state when a bound is reached.
func (s *Service) Keep(ctx context.Context, who audit.Principal, reports []New) (list []Info, err error) {
	switch {
	case s.Life <= 0:
		return nil, fault.New(fault.WrongOperation, "this installation stores no reports of verifications")
	case who.UserID == "":
		return nil, fault.New(fault.AccessDenied, "sign in to store a report of a verification")
	}
	err = s.Store.Atomic(ctx, func(ctx context.Context) error {
		list = nil
		n, bytes, err := s.Store.UsageOfReports(ctx, who.UserID)
		if err != nil {
			return err
		}
		for _, r := range reports {
			n, bytes = n+1, bytes+int64(len(r.Content))
		}
		if n > MostOfUser || bytes > MostBytes {
			return fault.Rollback(fault.Newf(fault.InvalidObjectState, "a user stores at most %d reports of %d MiB together: delete earlier ones", MostOfUser, MostBytes>>20))
		}
		for _, r := range reports {
			one, err := s.keep(ctx, who, r)
			if err != nil {
				return fault.Rollback(err)
			}
			list = append(list, one)
		}
		return nil
	})
	return list, err
}

func (s *Service) keep(ctx context.Context, who audit.Principal, r New) (Info, error) {
	if len(r.Digest) < CheckLength {
		return Info{}, fmt.Errorf("report: a digest of %d characters; want at least %d", len(r.Digest), CheckLength)
	}
	now := s.Now()
	info := Info{UserID: who.UserID, Name: shortened(r.Name), Verdict: r.Verdict, CreatedAt: now, ExpiresAt: now.Add(s.Life)}
	plain, err := json.Marshal(sealed{strings.ToLower(r.Digest[:CheckLength]), r.Content})
	if err != nil {
		return info, err
	}
	for range attempts {
		if info.Number, err = s.number(now); err != nil {
			return info, err
		}
		record := Record{Info: info, Bytes: int64(len(r.Content))}
		if record.Sealed, err = s.Vault.Seal(place(info.Number), plain); err != nil {
			return info, err
		}
		if added, err := s.Store.AddReport(ctx, record); added || err != nil {
			return info, err
		}
	}
	return info, fmt.Errorf("report: %d random numbers are taken", attempts)
}

// shortened returns a name of at most maxName characters.
func shortened(name string) string {
	runes := []rune(strings.ToValidUTF8(name, "?"))
	return strings.ReplaceAll(string(runes[:min(len(runes), maxName)]), "\x00", "?")
}

// letters are those of numbers: none is mistaken for another one (Crockford's base 32).
const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// number returns a random number such as 2611-7K3M-0QXZ: year, month, 40 bits.
func (s *Service) number(now time.Time) (string, error) {
	var random [8]byte
	if _, err := io.ReadFull(s.Rand, random[:]); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	for i := range random {
		random[i] = letters[random[i]%32]
	}
	return now.UTC().Format("0601") + "-" + string(random[:4]) + "-" + string(random[4:]), nil
}

// alike are letters and signs that people take for one of a number.
var alike = strings.NewReplacer("O", "0", "I", "1", "L", "1", "А", "A", "В", "B", "Е", "E", "К", "K", "М", "M", "Н", "H", "О", "0", "Р", "P", "С", "C", "Т", "T", "Х", "X",
	"-", "", " ", "", "\u00a0", "", "–", "", "—", "", "№", "")

// Normal returns the form of a number that a person has written, "" for what is no number.
func Normal(text string) string {
	if len(text) > 64 {
		return ""
	}
	text = alike.Replace(strings.ToUpper(strings.TrimSpace(text)))
	if len(text) != 12 || strings.Trim(text, letters) != "" {
		return ""
	}
	return text[:4] + "-" + text[4:8] + "-" + text[8:]
}

// checkAlike are letters that people take for a digit of a digest.
var checkAlike = strings.NewReplacer("а", "a", "в", "b", "с", "c", "е", "e", "о", "0", "o", "0", " ", "", "\u00a0", "", "-", "")

// Find returns a report by its number and the beginning of the digest of its document, for anyone. Who stored it needs no
// digest. The fault is object_not_found, also for a wrong digest.
func (s *Service) Find(ctx context.Context, who audit.Principal, number, check string) (*Report, error) {
	missing := fault.New(fault.NotFound, "there is no report with this number and digest: compare both with the printed report")
	normal := Normal(number)
	if normal == "" {
		return nil, missing
	}
	r, found, err := s.Store.Report(ctx, normal)
	if err != nil {
		return nil, err
	}
	if !found || !s.Now().Before(r.ExpiresAt) {
		return nil, missing
	}
	plain, err := s.Vault.Open(place(r.Number), r.Sealed)
	if err != nil {
		return nil, err
	}
	var of sealed
	if err := json.Unmarshal(plain, &of); err != nil {
		return nil, fmt.Errorf("report: %s: %w", r.Number, err)
	}
	if len(check) > 256 {
		return nil, missing
	}
	check = checkAlike.Replace(strings.ToLower(check))
	own := who.UserID != "" && who.UserID == r.UserID
	if !own && (len(check) < CheckLength || subtle.ConstantTimeCompare([]byte(check[:CheckLength]), []byte(of.Check)) != 1) {
		return nil, missing
	}
	return &Report{r.Info, of.Content}, nil
}

// Newest returns up to n reports of the caller, the newest first, after a position.
func (s *Service) Newest(ctx context.Context, who audit.Principal, older Position, n int) ([]Info, error) {
	return s.Store.NewestReports(ctx, who.UserID, older, n, s.Now())
}

// Delete deletes a report of the caller. The fault is object_not_found.
func (s *Service) Delete(ctx context.Context, who audit.Principal, number string) error {
	deleted, err := s.Store.DeleteReport(ctx, who.UserID, Normal(number))
	if err == nil && !deleted {
		err = fault.New(fault.NotFound, "you have stored no report with this number")
	}
	return err
}

// Sweep deletes reports whose time is over.
func (s *Service) Sweep(ctx context.Context) error { return s.Store.SweepReports(ctx, s.Now()) }
