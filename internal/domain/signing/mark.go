// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/sig"
)

// Mark returns the visible mark that a signature of a user would have now, as an SVG document. identifier is the
// certificate as in an order, params those of a form with [Form.Marked].
func (s *Service) Mark(ctx context.Context, userID, identifier string, f *Form, params map[string]string) ([]byte, error) {
	_, format := s.Formats.Named(f.Type)
	m, ok := format.(sig.Marker)
	if !ok {
		return nil, fault.Newf(fault.InvalidSignatureParams, "signatures of the type %s have no visible stamp", f.Type)
	}
	c, err := s.Keys.ResolveIn(ctx, nil, userID, identifier)
	if err != nil {
		return nil, err
	}
	svg, err := m.Mark(ctx, &sig.Job{Certificate: c.X509, Params: params, Zone: s.Zone, Time: s.Now()})
	if err != nil {
		return nil, translate(err)
	}
	return svg, nil
}
