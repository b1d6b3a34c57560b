// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/domain/user/records"
	"tamga/internal/web/pages/operator"
)

// importUsers imports a list of users for the pages of operators, or checks it.
func (s *Services) importUsers(ctx context.Context, o operator.ImportOrder) (report operator.ImportReport, err error) {
	list, err := records.NewReader(strings.NewReader(o.List), "auto")
	if err != nil {
		return report, fault.Newf(fault.InvalidParameters, "the list cannot be read: %s", err)
	}
	run := Import{Services: s, Group: o.Group, By: o.By, Remote: o.Remote}
	if o.Check {
		dir, err := os.MkdirTemp("", "tamga-import-")
		if err != nil {
			return report, err
		}
		defer os.RemoveAll(dir)
		run.Notes = dir
		if run.Scratch, err = s.Scratch(ctx, dir); err != nil {
			return report, err
		}
		defer run.Scratch.Close()
	}
	report.Stopped, err = run.Run(ctx, list, func(batch []*ImportItem) error {
		for _, i := range batch {
			switch {
			case i.Err == nil && i.Unchanged:
				report.Unchanged++
			case i.Err == nil:
				report.Added++
			default:
				report.Refused++
				if len(report.Refusals) == operator.MaxRefusals {
					continue
				}
				r := operator.ImportRefusal{Line: i.Line, Err: i.Err}
				if i.Record != nil {
					r.Login = i.Record.Login
				}
				if field, is := errors.AsType[*user.FieldError](i.Err); is {
					r.Field = field.Field
				}
				report.Refusals = append(report.Refusals, r)
			}
		}
		return nil
	})
	return report, err
}
