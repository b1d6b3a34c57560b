// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// etsiOf verifies a file of an upload once more and returns the validation report of ETSI. The page has no certificates of
// authorities, so the report cannot be made of what it carries.
func (a *API) etsiOf(ctx context.Context, files []sent, list []*report, at, password string) (rest.File, error) {
	i, err := strconv.Atoi(at)
	n := slices.IndexFunc(list, func(r *report) bool { return err == nil && r.At == i && r.Problem == "" })
	if n < 0 {
		return rest.File{}, fault.New(fault.InvalidParameters, "choose the signed file again")
	}
	r := list[n]
	order := &signing.VerifyOrder{Type: files[i].kind, Content: files[i].content, Password: password, Describe: r.document < 0, Powers: r.powers, ETSI: new(bytes.Buffer)}
	if r.document >= 0 {
		order.Original = files[r.document].content
	}
	_, err = a.Verifier.Verify(ctx, order)
	return rest.File{Content: bytes.NewReader(order.ETSI.Bytes()), Name: rest.FileName(r.Name) + ".etsi.xml", Type: "application/xml"}, err
}
