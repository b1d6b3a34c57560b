// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"fmt"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

func (a *API) userRoutes() []rest.Route {
	set := rest.Weigh(rest.Handle("POST /ums/user/{id}", "SetUserProperty", Operator, a.setProperty), effect.EndsAccess|effect.GivesAccess, propertyEffects)
	return []rest.Route{
		// With and without groupName: one operation, because method and path are the same.
		rest.Handle("POST /ums/user", "RegisterUser", Operator, a.register).Effects(effect.GivesAccess),
		rest.Handle("POST /ums/user/register", "RegisterUser2", Operator, a.register2).Effects(effect.GivesAccess),
		rest.Handle("POST /ums/user/isunique", "CheckIdentifiersUnique", Operator, a.checkUnique).Effects(effect.None),
		rest.Handle("GET /ums/user/{id}", "GetUserById", Operator, a.userByID),
		rest.Handle("GET /ums/user", "Get", Operator, a.find),
		set, set.Also("PATCH"),
		rest.Handle("DELETE /ums/user/{id}", "DeleteUser", Operator, a.delete).Effects(effect.EndsAccess | effect.Deletes),
		rest.Weigh(rest.Handle("POST /ums/user/{id}/approve", "SetUserApprovedStateAsync", Operator, a.approve), effect.GivesAccess|effect.EndsAccess,
			func(_ context.Context, r userApproval) (effect.Set, error) {
				return r.Approved.either(effect.GivesAccess, effect.EndsAccess), nil
			}),
	}
}

// identifiers is a dictionary from identifier types, by name or number, to values.
type identifiers map[string]*rest.Text

// parse reads the keys. A type with null counts as missing.
func (d identifiers) parse() (map[user.IdentifierType]string, error) {
	parsed := map[user.IdentifierType]string{}
	for key, value := range d {
		t, err := user.ParseIdentifierType(key)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if _, twice := parsed[t]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "%s: given twice, by name and by number", t)
		}
		parsed[t] = string(*value)
	}
	return parsed, nil
}

type registration struct {
	GroupName string `query:"groupName"`
	Body      identifiers
}

func (a *API) register(ctx context.Context, r registration) (string, error) {
	parsed, err := r.Body.parse()
	if err != nil {
		return "", err
	}
	id, err := a.users.Register(ctx, caller(ctx), user.Registration{Identifiers: parsed, Group: r.GroupName})
	if err == nil {
		rest.Concerning(ctx, id)
	}
	return id, err
}

// registered is the answer of RegisterUser2.
type registered struct {
	ID string `json:"Id"`
}

func (a *API) register2(ctx context.Context, r registration) (registered, error) {
	id, err := a.register(ctx, r)
	return registered{id}, err
}

// uniqueResult is UserDataUniqueResult.
type uniqueResult struct {
	Data           string
	IsUnique       bool
	UniqueRequired bool
}

// uniqueResults is UserIdentifiersUniqueResult.
type uniqueResults struct {
	Result map[string]uniqueResult // by identifier type
}

func (a *API) checkUnique(ctx context.Context, r struct {
	IssuerName string `query:"issuerName"`
	Body       identifiers
}) (uniqueResults, error) {
	parsed, err := r.Body.parse()
	if err == nil {
		err = a.check(ctx, max(1, len(parsed)))
	}
	if err != nil {
		return uniqueResults{}, err
	}
	unique, err := a.users.CheckUnique(ctx, caller(ctx), r.IssuerName, parsed)
	if err != nil {
		return uniqueResults{}, err
	}
	results := uniqueResults{map[string]uniqueResult{}}
	for t, u := range unique {
		results.Result[t.String()] = uniqueResult{u.Data, u.IsUnique, u.Required}
	}
	return results, nil
}

// never is the time of a missing sign-in. Clients expect a time there, not null.
const never = "0001-01-01T00:00:00.000Z"

// userInfo is DssUserInfo.
type userInfo struct {
	UserID          string `json:"UserId"`
	Login           string
	PhoneNumber     *string
	Email           *string
	PhoneConfirmed  bool
	EmailConfirmed  bool
	DisplayName     *string
	DistinguishName string
	AccountLocked   bool
	Group           string
	CreationDate    string
	LockoutDate     *string
	LastLoginDate   string
}

func describe(i user.Info) userInfo {
	d := userInfo{
		UserID: i.ID, Login: i.Login,
		PhoneNumber: rest.OrNull(i.PhoneNumber), PhoneConfirmed: i.PhoneConfirmed,
		Email: rest.OrNull(i.Email), EmailConfirmed: i.EmailConfirmed,
		DisplayName: rest.OrNull(i.DisplayName), DistinguishName: i.Name,
		AccountLocked: i.Locked, Group: i.Group,
		CreationDate: isoTime(i.CreatedAt), LastLoginDate: never,
	}
	if !i.LockedAt.IsZero() {
		d.LockoutDate = rest.OrNull(isoTime(i.LockedAt))
	}
	if !i.LastLoginAt.IsZero() {
		d.LastLoginDate = isoTime(i.LastLoginAt)
	}
	return d
}

func (a *API) userByID(ctx context.Context, r onUser) (userInfo, error) {
	i, err := a.users.ByID(ctx, caller(ctx), string(r.ID))
	return describe(i), err
}

func (a *API) find(ctx context.Context, r struct {
	Type       string `query:"type"`
	Value      string `query:"value"`
	IssuerName string `query:"issuerName"`
}) (userInfo, error) {
	t, err := user.ParseIdentifierType(r.Type)
	if err != nil {
		return userInfo{}, err
	}
	i, err := a.users.Find(ctx, caller(ctx), t, r.Value, r.IssuerName)
	if err == nil {
		rest.Concerning(ctx, i.ID)
	}
	return describe(i), err
}

// properties are the properties by number and name.
var properties = []struct {
	number, name string
	property     user.PropertyType
}{
	{"0", "DisplayName", user.DisplayName},
	{"1", "AccountLockedState", user.LockedState},
}

// setPropertyRequest sets a property of a user.
type setPropertyRequest struct {
	ID   userID `path:"id"`
	Body struct {
		PropertyType rest.Text `api:"integer"`
		Value        rest.Text
	}
}

// property returns the index of the property, -1 for an unknown one.
func (r setPropertyRequest) property() int {
	for i, p := range properties {
		if kind := string(r.Body.PropertyType); kind == p.number || strings.EqualFold(kind, p.name) {
			return i
		}
	}
	return -1
}

// propertyEffects are those of a lock or of its end, unless only the displayed name is set.
func propertyEffects(_ context.Context, r setPropertyRequest) (effect.Set, error) {
	if i := r.property(); i >= 0 && properties[i].property == user.DisplayName {
		return effect.None, nil
	}
	return effect.EndsAccess | effect.GivesAccess, nil
}

func (a *API) setProperty(ctx context.Context, r setPropertyRequest) (rest.None, error) {
	i := r.property()
	if i < 0 {
		return rest.None{}, fault.New(fault.InvalidParameters, "PropertyType: unknown, want 0 for the displayed name or 1 for the lock")
	}
	rest.Detail(ctx, properties[i].name)
	return rest.None{}, a.users.SetProperty(ctx, caller(ctx), string(r.ID), properties[i].property, string(r.Body.Value))
}

// deleteRequest is the deletion of a user. DestroyKey is ours: a user may have keys that messages need.
type deleteRequest struct {
	ID         userID `path:"id"`
	DestroyKey bool   `query:"destroyKey"`
}

func (a *API) delete(ctx context.Context, r deleteRequest) (rest.None, error) {
	return rest.None{}, a.users.Delete(ctx, caller(ctx), string(r.ID), r.DestroyKey)
}

// userApproval approves a user or takes the approval back.
type userApproval struct {
	ID       userID `path:"id"`
	Approved flag   `query:"approved"`
}

func (a *API) approve(ctx context.Context, r userApproval) (rest.None, error) {
	if !r.Approved.given {
		return rest.None{}, fault.New(fault.InvalidParameters, "approved is missing: want true or false in the query")
	}
	rest.Detail(ctx, fmt.Sprintf("approved=%t", r.Approved.value))
	return rest.None{}, a.users.Approve(ctx, caller(ctx), string(r.ID), r.Approved.value)
}
