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
	size := &sized{to: f}
	if err := b.network.TrustList(ctx, c.URL, size, c.Timeout); err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return io.NewSectionReader(f, 0, size.n), func() { _ = f.Close() }, nil
}

// sized knows how much was written.
type sized struct {
	to io.Writer
	n  int64
}

func (c *sized) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}
