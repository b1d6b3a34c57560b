// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"fmt"

	"tamga/internal/adapter/ldap"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/signin"
)

// ldapDirectory opens the directory with a number in the configuration. It reads the files of its settings.
func ldapDirectory(c *config.Config, i int) (*ldap.Directory, error) {
	d, what := c.Directories[i], fmt.Sprintf("directories[%d]", i)
	password, err := optionalSecret(c, d.BindPasswordFile, what+".bind_password_file")
	if err != nil {
		return nil, err
	}
	pool, err := roots(c, d.AuthoritiesFile)
	if err != nil {
		return nil, fmt.Errorf("%s.authorities_file: %w", what, err)
	}
	a := d.Attributes
	o := ldap.Config{
		Name: d.Name, Servers: d.Servers, Plain: d.Plain, Roots: pool, BindDN: d.BindDN, Password: password, Base: d.Base, Filter: d.Filter,
		ID: a.ID, Login: a.Login, Title: a.Name, Email: a.Email, Phone: a.Phone, Disabled: a.Disabled, Component: a.DN,
		GroupBase: d.GroupBase, Membership: ldap.Membership(d.Membership), DefaultGroup: d.DefaultGroup,
	}
	if o.Email == "-" {
		o.Email = ""
	}
	for _, g := range d.Groups {
		o.Groups = append(o.Groups, ldap.Group{DN: g.DN, Group: g.Group})
	}
	opened, err := ldap.New(o)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", what, err)
	}
	return opened, nil
}

// directories are those of the configuration, for sign-ins.
func (b *Base) directories() (list []signin.Directory, err error) {
	for i := range b.Config.Directories {
		d, err := ldapDirectory(b.Config, i)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// Directories returns what synchronizes the directories of the configuration.
func (s *Services) Directories() (list []*directory.Service, err error) {
	for i, c := range s.Config.Directories {
		d, err := ldapDirectory(s.Config, i)
		if err != nil {
			return nil, err
		}
		list = append(list, &directory.Service{
			Rules:  directory.Rules{Name: c.Name, Match: directory.Match(c.Match), LockAfter: c.LockAfter, Every: c.Every, MostMissing: c.MostMissing},
			Source: d, Store: store.Directories{Users: store.Users{DB: s.DB}}, Users: s.Users, Methods: s.Identity, Audit: s.Audit, Now: s.DB.Now, Rand: rand.Reader,
			// A series of its own: a directory that accepts connections may not be readable as a whole.
			Noted:  func(err error) { s.watch.note(part{directoryPart, c.Name + " synchronization"}, err) },
			Failed: func(err error) { s.log.Error("synchronizing a directory", "directory", c.Name, "error", err) },
		})
	}
	return list, nil
}

// directoryPart is the part of directories.
const directoryPart = "directory"

// directoryDependencies returns the directories as dependencies.
func (b *Base) directoryDependencies() (list []Dependency, err error) {
	for i, c := range b.Config.Directories {
		d, err := ldapDirectory(b.Config, i)
		if err != nil {
			return nil, err
		}
		list = append(list, Dependency{directoryPart, c.Name, fmt.Sprintf("directories[%d].servers", i), func(ctx context.Context) error { return d.Probe(ctx) }})
	}
	return list, nil
}
