// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"
	"fmt"
	"os"

	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// secretPath returns the file of a secret that the configuration names. A credential of the service
// manager comes first.
func secretPath(c *config.Config, file string) string { return files.Credential(c.Path(file)) }

// ownFile reads a secret of several lines. The file must not be readable by other users.
func ownFile(c *config.Config, file, what string) ([]byte, error) {
	return files.OwnFile(secretPath(c, file), what)
}

// certificatesOf reads all certificates of files that the configuration names. what is the name
// of the setting.
func certificatesOf(c *config.Config, files []string, what string) (list []*x509gost.Certificate, err error) {
	for _, file := range files {
		data, err := os.ReadFile(c.Path(file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		certs, err := x509gost.ParseCertificates(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", what, file, err)
		}
		list = append(list, certs...)
	}
	return list, nil
}

// certificates reads a file with at least one certificate.
func certificates(c *config.Config, file string) ([]*x509gost.Certificate, error) {
	data, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, err
	}
	return x509gost.ParseCertificates(data)
}

// roots reads the authorities that the certificates of servers must lead to. No file means nil,
// the authorities of the system.
func roots(c *config.Config, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: want certificates as PEM", file)
	}
	return pool, nil
}

// optionalSecret reads a secret, or returns "" if no file is configured.
func optionalSecret(c *config.Config, file, what string) (string, error) {
	if file == "" {
		return "", nil
	}
	return files.OwnSecret(secretPath(c, file), what)
}
