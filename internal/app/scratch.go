// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"path/filepath"
)

// Scratch opens an empty installation with the rules of this one and its groups. Its database is a
// file in dir, which the caller removes after Close. A trial keeps there what must be unique.
func (s *Services) Scratch(ctx context.Context, dir string) (made *Services, err error) {
	conf := *s.Config
	conf.Database, conf.DatabasePasswordFile = "sqlite:"+filepath.Join(dir, "scratch.db"), ""
	base, err := Open(ctx, &conf, ForCommand, s.log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			base.Close()
		}
	}()
	if err := base.Migrate(ctx); err != nil {
		return nil, err
	}
	if made, err = base.Services(ctx); err != nil {
		return nil, err
	}
	groups, err := s.Users.Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if _, err := made.Users.AddGroup(ctx, g.Name, g.Title); err != nil {
			return nil, err
		}
	}
	return made, nil
}
