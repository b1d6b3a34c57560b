// SPDX-License-Identifier: Apache-2.0

// Package encryption has the pages that encrypt files for people and certificates, and that decrypt them. Begin with
// [New] and [API.Routes].
package encryption

import (
	"context"
	"embed"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("encryption", files, nil) }

// Messages encrypts and decrypts; see [encryption.Service]. Start of both is that of [operation.Service].
type Messages interface {
	Encrypt(ctx context.Context, who audit.Principal, o *encryption.EncryptOrder) (*operation.Operation, error)
	Decrypt(ctx context.Context, who audit.Principal, o *encryption.DecryptOrder) (*operation.Operation, error)
	Parse(ctx context.Context, who audit.Principal, snap *signing.Snapshot, t encryption.Type, messages []encryption.Input) ([]encryption.Parsed, error)
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
}

// Directory finds recipients; see [encryption.Directory].
type Directory interface {
	Own(ctx context.Context, who audit.Principal) (*encryption.Recipient, error)
	Find(ctx context.Context, who audit.Principal, text string) (found []encryption.Recipient, more bool, err error)
	Chosen(ctx context.Context, who audit.Principal, ids []string) ([]encryption.Recipient, error)
	Groups(ctx context.Context, who audit.Principal) ([]string, error)
	InGroup(ctx context.Context, who audit.Principal, group string) ([]encryption.Recipient, error)
}

// Documents stores the files and the results; see [document.Service].
type Documents interface {
	view.Stored
	NewIntake(ctx context.Context, who audit.Principal) (*document.Intake, error)
	Keep(ctx context.Context, who audit.Principal, documents []document.New) ([]document.Info, error)
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
}

// Deps lists what these pages call, and their limits.
type Deps struct {
	Messages     Messages
	Directory    Directory
	Documents    Documents
	Certificates view.Certificates
	Now          func() time.Time

	ClientID string        // of the pages
	Ended    bool          // certificates that have ended decrypt, too
	Searches bool          // people can be found, not only the reader
	Most     int64         // largest body of an upload, in bytes
	Kept     time.Duration // how long files are stored
}

// API serves these pages.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }

// Routes returns these pages.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		view.Handle("GET /encrypt", "EncryptPage", rest.SignedIn, a.encryptForm),
		rest.HandleDocuments("POST /encrypt", "EncryptByPage", rest.SignedIn, a.Documents.NewIntake, a.encrypt).Answering(rest.Redirect{}, rest.Page{}).AtMost(a.Most),
		view.Handle("GET /encrypt/recipients", "FindRecipients", rest.SignedIn, a.findRecipients),
		view.Handle("GET /encrypted", "EncryptedPage", rest.SignedIn, a.encrypted),
		rest.Handle("GET /encrypted/document/{ref}", "DownloadEncrypted", rest.SignedIn, a.download).Answering(rest.File{}),
		rest.Handle("GET /encrypted/all.zip", "DownloadAllEncrypted", rest.SignedIn, a.downloadAll(encryption.KindEncrypt, "encrypted.zip")).Answering(rest.File{}),
		view.Handle("GET /decrypt", "DecryptPage", rest.SignedIn, a.decryptForm),
		rest.HandleDocuments("POST /decrypt", "DecryptByPage", rest.SignedIn, a.Documents.NewIntake, a.decrypt).Answering(rest.Redirect{}, rest.Page{}).AtMost(a.Most),
		view.Handle("GET /decrypted", "DecryptedPage", rest.SignedIn, a.decrypted),
		rest.Handle("GET /decrypted/document/{ref}", "DownloadDecrypted", rest.SignedIn, a.download).Answering(rest.File{}),
		rest.Handle("GET /decrypted/all.zip", "DownloadAllDecrypted", rest.SignedIn, a.downloadAll(encryption.KindDecrypt, "decrypted.zip")).Answering(rest.File{}),
	}
}

// tabs are the pages of this area.
func tabs(path string) []view.Tab {
	list := []view.Tab{{Address: "/encrypt", Key: "encrypt.tab"}, {Address: "/decrypt", Key: "decrypt.tab"}}
	for i := range list {
		list[i] = list[i].At(path)
	}
	return list
}
