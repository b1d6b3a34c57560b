// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/accreditation"
)

// makeTrustList makes the service of the list of accredited authorities.
func (o *opener) makeTrustList(context.Context) error {
	c := &o.Config.TrustList
	signers, err := certificatesOf(o.Config, c.SignerFiles, "trust_list.signer_files")
	if err != nil {
		return err
	}
	o.TrustList = &accreditation.Service{Store: store.TrustLists{DB: o.DB}, Signers: signers, Now: o.DB.Now, Every: c.Every,
		Failed: func(err error) { o.log.Warn("looking for a newer list of accredited authorities", "error", err) }}
	return nil
}

// fetchTrustList fetches the list into a file of the spool, which has no name.
func (b *Base) fetchTrustList(ctx context.Context, spool *blob.Spool) (io.ReadSeeker, func(), error) {
	f, err := spool.Create()
	if err != nil {
		return nil, nil, err
	}
	c := &b.Config.TrustList
	size, err := b.network.TrustList(ctx, c.URL, f, c.Timeout)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return io.NewSectionReader(f, 0, size), func() { _ = f.Close() }, nil
}
