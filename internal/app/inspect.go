// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/capture"
	printing "tamga/internal/adapter/print"
	"tamga/internal/config"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/files"
)

// Inspect opens what a configuration names: files of certificates and keys, secrets, directories. It
// returns all faults. It leaves nothing behind, and reaches neither the database nor the network.
func Inspect(c *config.Config) (faults []error) {
	add := func(err error) {
		faults = append(faults, c.Locate(config.Each(err))...)
	}
	secret := func(setting, file string) {
		if file != "" {
			_, err := files.OwnSecret(secretPath(c, file), setting)
			add(err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.MasterKeys.Files)) {
		key, err := readMasterKey(c, id)
		clear(key)
		add(err)
	}
	if c.TLS.CertificateFile != "" && c.TLS.KeyFile != "" {
		_, err := keyPair(c, "tls", c.TLS.CertificateFile, c.TLS.KeyFile)
		add(err)
	}
	secret("database_password_file", c.DatabasePasswordFile)
	for i, client := range c.Clients {
		secret(fmt.Sprintf("clients[%d].secret_file", i), client.SecretFile)
	}
	if c.Bucket.Endpoint != "" {
		secret("bucket.access_key_file", c.Bucket.AccessKeyFile)
		secret("bucket.secret_key_file", c.Bucket.SecretKeyFile)
		_, err := roots(c, c.Bucket.AuthoritiesFile)
		add(named("bucket.authorities_file", err))
	} else {
		add(inspectDir("blob_dir", c.Path(c.BlobDir)))
	}
	secret("operations.callbacks.secret_file", c.Operations.Callbacks.SecretFile)
	if _, err := collector(c, ""); err != nil {
		add(err)
	}
	add(inspectDir("spool_dir", c.Path(c.SpoolDir)))
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		add(inspectDir("database", filepath.Dir(c.Path(file))))
	}
	if file := c.OperatorCertificates.AuthoritiesFile; file != "" {
		_, err := certificatesOf(c, []string{file}, "operator_certificates.authorities_file")
		add(err)
	}
	for _, file := range c.OperatorCertificates.RevocationFiles {
		_, err := files.RevocationLists(c.Path(file))
		add(named("operator_certificates.revocation_files", err))
	}
	_, err := roots(c, c.Webhooks.AuthoritiesFile)
	add(named("webhooks.authorities_file", err))
	_, err = roots(c, c.Operations.Callbacks.AuthoritiesFile)
	add(named("operations.callbacks.authorities_file", err))
	for _, file := range c.Evidence.RootFiles {
		_, err := certificatesOf(c, []string{file}, "evidence.root_files")
		add(err)
	}
	for _, file := range c.TrustList.SignerFiles {
		_, err := certificatesOf(c, []string{file}, "trust_list.signer_files")
		add(err)
	}
	_, err = powerFiles(c)
	add(err)
	if file := c.Powers.WithdrawnFile; file != "" {
		_, err := (&withdrawnFile{path: c.Path(file)}).read()
		add(named("powers.withdrawn_file", err))
	}
	for _, file := range c.Evidence.AuthorityFiles {
		_, err := certificatesOf(c, []string{file}, "evidence.authority_files")
		add(err)
	}
	for i := range c.Certificates.Authorities {
		// One at a time, so that one fault does not hide another.
		one := *c
		one.Certificates.Authorities = c.Certificates.Authorities[i : i+1]
		_, err := enrolment(&one, &user.Naming{})
		add(err)
	}
	for i := range c.External {
		_, err := provider(c, i, time.Now, nil)
		add(err)
	}
	for i := range c.Directories {
		_, err := ldapDirectory(c, i)
		add(err)
	}
	add(inspectTemplates(c))
	_, err = readLogo(c)
	add(err)
	if c.GOSTTLS.Socket != "" {
		add(inspectDir("gost_tls.socket", filepath.Dir(c.Path(c.GOSTTLS.Socket))))
	}
	// Senders of messages read their own secrets.
	never := func() time.Time { return time.Time{} }
	if c.Messages.Capture {
		_, err := capturedBeside(c, capture.New(nil, nil).Notifiers(), never, nil)
		add(err)
	} else {
		_, err := notifiers(c, never, nil)
		add(err)
	}
	return faults
}

// inspectTemplates reads the texts of messages and of printed passwords.
func inspectTemplates(c *config.Config) error {
	dir := c.Messages.TemplatesDir
	if dir == "" {
		return nil
	}
	info, err := os.Stat(c.Path(dir))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	own := os.DirFS(c.Path(dir))
	if err == nil {
		_, err = notify.NewTemplates(c.Messages.Title, own)
	}
	if err == nil {
		_, err = printing.New(c.Messages.Language, c.Messages.Title, own)
	}
	return named("messages.templates_dir", err)
}

func named(setting string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", setting, err)
	}
	return err
}

// keyPair reads a certificate and its key. section is the place of both settings.
func keyPair(c *config.Config, section, certificateFile, keyFile string) (pair tls.Certificate, err error) {
	var texts [2][]byte
	var faults []error
	for i, f := range []struct{ setting, file string }{
		{section + ".certificate_file", c.Path(certificateFile)}, {section + ".key_file", secretPath(c, keyFile)},
	} {
		var err error
		if texts[i], err = os.ReadFile(f.file); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.setting, err))
		}
	}
	defer clear(texts[1])
	if len(faults) > 0 {
		return pair, errors.Join(faults...)
	}
	if pair, err = tls.X509KeyPair(texts[0], texts[1]); err != nil {
		return pair, fmt.Errorf("%s: %s and %s do not belong together: %s", section, certificateFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return pair, nil
}

// inspectDir checks a directory that the program makes if it is missing.
func inspectDir(setting, dir string) error {
	info, err := os.Stat(dir)
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", setting, err)
	case !info.IsDir():
		return fmt.Errorf("%s: %s is not a directory", setting, dir)
	}
	f, err := os.CreateTemp(dir, ".tamga-check-*")
	if err != nil {
		return fmt.Errorf("%s: this user cannot write to %s: %w", setting, dir, err)
	}
	return named(setting, errors.Join(f.Close(), os.Remove(f.Name())))
}
