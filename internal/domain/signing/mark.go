// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/sig"
)

// Marks returns the visible marks that a signature of a user would have now, as SVG documents: one for each set of
// parameters, which are those of a form with [Form.Marks]. identifier is the certificate as in an order.
func (s *Service) Marks(ctx context.Context, userID, identifier string, f *Form, params ...map[string]string) ([][]byte, error) {
	_, format := s.Formats.Named(f.Type)
	m, ok := format.(sig.Marker)
	if !ok {
		return nil, fault.Newf(fault.InvalidSignatureParams, "signatures of the type %s have no visible stamp", f.Type)
	}
	c, err := s.Keys.ResolveIn(ctx, nil, userID, identifier)
	if err != nil {
		return nil, err
	}
	marks := make([][]byte, len(params))
	for i, p := range params {
		if marks[i], err = m.Mark(ctx, &sig.Job{Certificate: c.X509, Params: p, Zone: s.Zone, Time: s.Now()}); err != nil {
			return nil, translate(err)
		}
	}
	return marks, nil
}
