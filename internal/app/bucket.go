// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"tamga/internal/adapter/blob"
	"tamga/internal/files"
)

// bucket opens the S3 bucket of the configuration.
func (b *Base) bucket(ctx context.Context) (blob.Storage, error) {
	c := &b.Config.Bucket
	o := blob.BucketOptions{Endpoint: c.Endpoint, Region: c.Region, Bucket: c.Name, Prefix: c.Prefix, PathStyle: c.PathStyle}
	var err error
	if o.AccessKey, err = files.OwnSecret(secretPath(b.Config, c.AccessKeyFile), "bucket.access_key_file"); err != nil {
		return nil, err
	}
	if o.SecretKey, err = files.OwnSecret(secretPath(b.Config, c.SecretKeyFile), "bucket.secret_key_file"); err != nil {
		return nil, err
	}
	if c.AuthoritiesFile != "" {
		text, err := os.ReadFile(b.Config.Path(c.AuthoritiesFile))
		if err != nil {
			return nil, fmt.Errorf("bucket.authorities_file: %w", err)
		}
		o.Authorities = x509.NewCertPool()
		if !o.Authorities.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("bucket.authorities_file: %s has no certificate in PEM form", c.AuthoritiesFile)
		}
	}
	return blob.NewBucket(ctx, o)
}
