// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"tamga/internal/adapter/qr"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/report"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/sign"
	"tamga/internal/web/rest"
)

// cards makes cards of signed documents for the interface and the pages.
type cards struct {
	verifier *verifier
	zone     *time.Location
	language string
	reports  *report.Service
	address  string // of the pages
	now      func() time.Time
}

// cards returns what makes cards; nil if the installation does not verify.
func (b *serverMaker) cards() *cards {
	if b.svs == nil {
		return nil
	}
	s := b.pageSettings(nil)
	return &cards{verifier: b.svs, zone: s.Zone, language: s.Language, reports: b.reports, address: s.Address, now: b.DB.Now}
}

// Card implements sign.Cards and signapi.Cards. With a report, one is stored for the caller, and a QR code on the card
// leads to it.
func (c *cards) Card(ctx context.Context, who audit.Principal, o *signing.CardOrder, withReport bool) (result rest.Content, err error) {
	order := *o
	if order.Language == "" {
		order.Language = c.language
	}
	if order.Zone == nil {
		order.Zone = c.zone
	}
	if withReport {
		order.Paint = qr.PNG
		order.Drop = func(ctx context.Context, number string) error { return c.reports.Delete(ctx, who, number) }
		order.Keep = func(ctx context.Context, found []signing.SignatureReport, digest []byte) (number, address string, err error) {
			one, err := sign.NewReport(order.Document.Name, order.Document.Document.Size(), digest, found, c.now())
			if err != nil {
				return "", "", err
			}
			kept, err := c.reports.Keep(ctx, who, []report.New{one})
			if err != nil {
				return "", "", err
			}
			return kept[0].Number, sign.ReportAddress(c.address, kept[0].Number, one.Digest), nil
		}
	}
	err = c.verifier.api.InTurn(ctx, func(ctx context.Context) error {
		result, err = c.verifier.verification.Card(ctx, &order)
		return err
	})
	return result, err
}
