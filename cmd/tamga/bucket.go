package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"tamga/internal/adapter/blob"
)

// bucket opens the bucket of the configuration.
func (h *house) bucket(ctx context.Context) (blob.Place, error) {
	c := &h.config.Bucket
	o := blob.BucketOptions{Endpoint: c.Endpoint, Region: c.Region, Bucket: c.Name, Prefix: c.Prefix, PathStyle: c.PathStyle}
	var err error
	if o.AccessKey, err = ownSecret(h.config.Path(c.AccessKeyFile), "bucket.access_key_file"); err != nil {
		return nil, err
	}
	if o.SecretKey, err = ownSecret(h.config.Path(c.SecretKeyFile), "bucket.secret_key_file"); err != nil {
		return nil, err
	}
	if c.AuthoritiesFile != "" {
		text, err := os.ReadFile(h.config.Path(c.AuthoritiesFile))
		if err != nil {
			return nil, fmt.Errorf("bucket.authorities_file: %w", err)
		}
		o.Authorities = x509.NewCertPool()
		if !o.Authorities.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("bucket.authorities_file: %s holds no certificate", c.AuthoritiesFile)
		}
	}
	return blob.NewBucket(ctx, o)
}
