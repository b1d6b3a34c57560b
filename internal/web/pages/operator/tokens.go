// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// tokens lists the tokens in stock and those of users.
func (a *API) tokens(ctx context.Context, r struct {
	Done  string `query:"done"`
	Free  string `query:"free"`
	After string `query:"after"`
}) (view.View, error) {
	list, err := a.OneTime.Tokens(ctx, oath.Query{After: r.After, Free: r.Free != "", Limit: pageRows})
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "tokens.title", Head: []string{"field.serial", "requests.kind", "person.title", "certificate.state", "requests.at"}, Empty: "tokens.none"}
	users := make([]string, len(list))
	for i := range list {
		users[i] = list[i].UserID
	}
	owners, err := a.aboutAll(ctx, users)
	if err != nil {
		return view.View{}, err
	}
	for i, x := range list {
		state, names, owner := cell{Key: "tokens.usable"}, []string(nil), owners[i]
		if x.UserID == "" {
			owner, names = cell{Key: "tokens.free"}, []string{"token-discard"}
		}
		if a.Now().Before(x.LockedUntil) {
			state, names = cell{Key: "people.locked", Bad: true}, append(names, "token-unlock")
		}
		line := row{Cells: []cell{{Text: x.Serial}, {Key: "token.kind." + strings.ToLower(string(x.Type))}, owner, state, {At: x.CreatedAt}}}
		if x.UserID != "" && owner.Text != x.UserID { // a person whom the operator reaches
			if line.Commands, err = a.acts(ctx, &object{ID: x.UserID, Of: x.Serial, from: "tokens"}, "token-sync"); err != nil {
				return view.View{}, err
			}
		}
		for _, n := range names {
			line.Commands = append(line.Commands, a.commandLink("/operator/tokens", "", n, x.Serial))
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) == pageRows {
		t.Next = "/operator/tokens?" + url.Values{"free": {r.Free}, "after": {list[len(list)-1].Serial}}.Encode()
	}
	t.Filters = []view.Tab{{Address: "/operator/tokens", Key: "tokens.all", Here: r.Free == ""}, {Address: "/operator/tokens?free=yes", Key: "tokens.only_free", Here: r.Free != ""}}
	t.Commands = []link{a.commandLink("/operator/tokens", "", "token-import", "")}
	return a.office(ctx, "sections", "tokens.title", r.Done, sections{Tables: []table{t}}), nil
}

func (a *API) tokenCommands() []command {
	service := a.OneTime
	about := func(ctx context.Context, o *object) (row, error) {
		token, found, err := service.TokenNumbered(ctx, o.Of)
		if err == nil && !found {
			err = fault.Newf(fault.NotFound, "there is no token %.64q: it was deleted, or the link is wrong", o.Of)
		}
		return row{Cells: []cell{tokenCell(view.VisitorOf(ctx).Words, token)}}, err
	}
	return []command{
		{name: "token-import", adds: true, operation: "ImportTokens", effects: does(effect.None), fields: []field{
			{name: "file", kind: kindFile, hint: "field.hint.tokens"}, {name: "tokens", kind: kindArea}, {name: "password", kind: kindSecret}, {name: "key", kind: kindSecret, hint: "field.hint.key"},
		}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			list, err := readStock(f)
			if err != nil {
				return nil, err
			}
			defer stock.Wipe(list)
			known, err := service.ImportTokens(ctx, list)
			if err != nil {
				return nil, err
			}
			rest.Detail(ctx, strconv.Itoa(len(list)-len(known))+" tokens")
			return &made{Text: strconv.Itoa(len(list) - len(known)), Note: "tokens.imported"}, nil
		}},
		{name: "token-unlock", operation: "UnlockToken", effects: does(effect.GivesAccess), about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, service.UnlockToken(ctx, o.Of)
		}},
		{name: "token-discard", operation: "DiscardToken", effects: does(effect.Deletes), named: true, about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, service.DiscardToken(ctx, o.Of)
		}},
	}
}

// readStock reads the file of a vendor, or its text, from a form.
func readStock(f rest.Form) (list []stock.Token, err error) {
	_, chosen := f["file"]
	text := strings.TrimRight(cmp.Or(f.Get("file"), f.Get("tokens")), " \t\r\n")
	switch {
	case chosen && f.Get("tokens") != "":
		return nil, fault.New(fault.InvalidParameters, "choose a file or paste its text, not both")
	case !chosen && text == "":
		return nil, fault.New(fault.ContentRequired, "choose the file of the vendor, or paste its text")
	case !utf8.ValidString(text):
		return nil, fault.New(fault.InvalidContent, "the tokens cannot be read: the file is not text in UTF-8")
	}
	if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n"), "<") {
		with := stock.Opening{Password: f.Get("password")}
		if with.Key, err = hex.DecodeString(strings.TrimSpace(f.Get("key"))); err != nil {
			return nil, fault.New(fault.InvalidParameters, "key: want hexadecimal digits")
		}
		if len(with.Key) == 0 {
			with.Key = nil
		}
		list, err = stock.ReadPSKC(strings.NewReader(text), with)
	} else {
		list, err = stock.ReadCSV(strings.NewReader(text))
	}
	if _, is := fault.As(err); err != nil && !is {
		why := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "stock: "), "\n", "; ") // has no secret
		err = fault.Newf(fault.InvalidContent, "the tokens cannot be read: %s", why).With(err)
	}
	return list, err
}
