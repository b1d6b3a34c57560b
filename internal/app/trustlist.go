// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"os"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/accreditation"
)

// makeTrustList makes the service of the list of accredited authorities. A command fetches nothing.
func (o *opener) makeTrustList(context.Context) error {
	c := &o.Config.TrustList
	signers, err := certificatesOf(o.Config, c.SignerFiles, "trust_list.signer_files")
	if err != nil {
		return err
	}
	o.TrustList = &accreditation.Service{Store: store.TrustLists{DB: o.DB}, Signers: signers, Now: o.DB.Now, Every: c.Every}
	if c.URL != "" && o.network != nil {
		o.TrustList.Source = o.fetchTrustList
	}
	return nil
}

// fetchTrustList fetches the list into a file of the spool directory.
func (b *Base) fetchTrustList(ctx context.Context) (io.ReadSeeker, func(), error) {
	f, err := os.CreateTemp(b.Config.Path(b.Config.SpoolDir), "trust-list-*")
	if err != nil {
		return nil, nil, err
	}
	done := func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	c := &b.Config.TrustList
	if err := b.network.TrustList(ctx, c.URL, f, c.Timeout); err != nil {
		done()
		return nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}
