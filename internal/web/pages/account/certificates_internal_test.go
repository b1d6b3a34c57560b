// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"

	"tamga/internal/domain/keys"
	"tamga/internal/web/pages/view"
)

// TestDeletionOf says what is lost with each kind of request.
func TestDeletionOf(t *testing.T) {
	for _, c := range []struct {
		kind   keys.RequestType
		status keys.RequestStatus
		want   string
	}{
		{keys.ForCertificate, keys.Pending, "certificates.delete_request_key"},
		{keys.ForRevocation, keys.Pending, "certificates.delete_request_text"},
		{keys.ForCertificate, keys.Accepted, "certificates.delete_request_over"},
		{keys.ForCertificate, keys.Rejected, "certificates.delete_request_over"},
	} {
		q := keys.Request{RequestRecord: keys.RequestRecord{Type: c.kind, Status: c.status}}
		if got := deletionOf(&q); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.status, got, c.want)
		}
		for _, w := range view.Languages {
			if w.TextOr(c.want, "") == "" {
				t.Errorf("%s has no %s", w.Language, c.want)
			}
		}
	}
}
