// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"encoding/json"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// policyAPI serves the policies of users.
type policyAPI struct {
	policies *policy.Editor
	lang     string // of descriptions if the client asks for no language that we have
}

// PolicyRoutes returns the operations on the policies of users. Mount them beside
// [API.Routes] at the same gate. lang is the language of the installation, "ru" or "en".
func PolicyRoutes(policies *policy.Editor, lang string) []rest.Route {
	a := policyAPI{policies, lang}
	return []rest.Route{
		rest.Handle("GET /ums/user/{id}/operationpolicy", "GetUserOperationPolicy", Operator, a.operation).Answering([]operationRule[uint32]{}, fullPolicy[operationRule[string]]{}),
		a.weighed(rest.Handle("POST /ums/user/{id}/operationpolicy", "SetUserOperationPolicy", Operator, a.setActions(policy.Operation)).Taking([]int{}), policy.Operation),
		rest.Handle("GET /ums/user/{id}/accesspolicy", "GetUserAccessPolicy", Operator, a.access).Answering([]accessRule[uint32]{}, fullPolicy[accessRule[string]]{}),
		a.weighed(rest.Handle("POST /ums/user/{id}/accesspolicy", "SetUserAccessPolicy", Operator, a.setActions(policy.Access)).Taking([]int{}), policy.Access),
		rest.Handle("GET /ums/user/{id}/notificationpolicy/events", "GetNotificationEvents", Operator, a.events),
		rest.Handle("GET /ums/user/{id}/notificationpolicy", "GetNotificationPolicy", Operator, a.notification),
		rest.Weigh(rest.Handle("POST /ums/user/{id}/notificationpolicy", "SetNotificationPolicy", Operator, a.setNotification).Taking(map[string][]string{}), effect.WeakensPolicy,
			func(ctx context.Context, r setNotificationRequest) (effect.Set, error) {
				return a.effects(ctx, r.ID, policy.Notification, policy.Setting{Notifiers: r.Body})
			}),
	}
}

// policyRequest asks for a policy: as a list, for older clients, or in full.
type policyRequest struct {
	ID   userID `path:"id"`
	Full flag   `query:"full"`
}

// operationRule is a row of an operation policy. Action is a name in the full form and
// a number in the list.
type operationRule[A any] struct {
	Action               A
	ConfirmationRequired bool
}

// accessRule is a row of an access policy.
type accessRule[A any] struct {
	Action       A
	AccessDenied bool
}

// fullPolicy is UserOperationPolicy or UserAccessPolicy.
type fullPolicy[R any] struct {
	Policy         []R
	ChangesAllowed bool
}

func (a policyAPI) operation(ctx context.Context, r policyRequest) (any, error) {
	p, err := a.policies.Get(ctx, caller(ctx), string(r.ID), policy.Operation)
	return rules(p, r.Full.value, markedOperation), err
}

func markedOperation(action any, marked bool) operationRule[any] {
	return operationRule[any]{action, marked}
}

func (a policyAPI) access(ctx context.Context, r policyRequest) (any, error) {
	p, err := a.policies.Get(ctx, caller(ctx), string(r.ID), policy.Access)
	return rules(p, r.Full.value, func(action any, marked bool) accessRule[any] { return accessRule[any]{action, marked} }), err
}

// rules returns a rule for every action, whether or not the policy marks it.
func rules[R any](p policy.Setting, full bool, rule func(action any, marked bool) R) any {
	var list []R
	for _, action := range policy.Actions() {
		name := any(uint32(action))
		if full {
			name = action.String()
		}
		list = append(list, rule(name, p.Actions&action != 0))
	}
	if full {
		return fullPolicy[R]{list, !p.Fixed}
	}
	return list
}

// effects are those of a new policy of a user: it may ask for less than the one that applies now.
func (a policyAPI) effects(ctx context.Context, id userID, k policy.Kind, wanted policy.Setting) (effect.Set, error) {
	weakens, err := a.policies.Weakens(ctx, string(id), k, wanted)
	if !weakens {
		return effect.None, err
	}
	return effect.WeakensPolicy, err
}

// weighed declares the effects of a route that sets actions.
func (a policyAPI) weighed(r rest.Route, k policy.Kind) rest.Route {
	return rest.Weigh(r, effect.WeakensPolicy, func(ctx context.Context, r setPolicyRequest) (effect.Set, error) {
		set, err := r.Body.actions()
		if err != nil {
			return effect.None, err
		}
		return a.effects(ctx, r.ID, k, policy.Setting{Actions: set})
	})
}

// setPolicyRequest holds a list of actions, or one value in place of a list.
type setPolicyRequest struct {
	ID   userID `path:"id"`
	Body actionList
}

func (a policyAPI) setActions(k policy.Kind) func(context.Context, setPolicyRequest) (rest.None, error) {
	return func(ctx context.Context, r setPolicyRequest) (rest.None, error) {
		set, err := r.Body.actions()
		if err != nil {
			return rest.None{}, err
		}
		return rest.None{}, a.policies.SetActions(ctx, caller(ctx), string(r.ID), k, set)
	}
}

// actionList is a set of actions as clients write one: numbers and names, each of one or of
// several. A missing body must not count as an empty list.
type actionList struct {
	given bool
	set   policy.Action
}

func (l actionList) actions() (policy.Action, error) {
	if !l.given {
		return 0, noActions()
	}
	return l.set, nil
}

func noActions() error {
	return fault.New(fault.InvalidParameters, "actions: want an array of numbers or names as the body, such as [2]; [] for none")
}

// FromValue implements rest.FromValue.
func (l *actionList) FromValue(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var texts []string
	for _, e := range list {
		switch e := e.(type) {
		case json.Number:
			texts = append(texts, e.String())
		case string:
			for name := range strings.SplitSeq(e, ",") { // sets are separated by commas
				texts = append(texts, strings.TrimSpace(name))
			}
		default:
			return noActions()
		}
	}
	set, err := policy.ParseActions(texts)
	*l = actionList{true, set}
	return err
}

// MarshalJSON implements json.Marshaler: the names of the actions, null for a missing list.
func (l actionList) MarshalJSON() ([]byte, error) {
	if !l.given {
		return []byte("null"), nil
	}
	names := []string{}
	for _, a := range policy.Actions() {
		if l.set&a != 0 {
			names = append(names, a.String())
		}
	}
	return json.Marshal(names)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *actionList) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil || names == nil {
		*l = actionList{}
		return err
	}
	set, err := policy.ParseActions(names)
	*l = actionList{true, set}
	return err
}

// eventInfo describes a type of event.
type eventInfo struct{ Type, Category, Description string }

// eventCategory is a heading of events.
type eventCategory struct{ Category, Description string }

// eventsInfo is UserEventsInfo.
type eventsInfo struct {
	Events          []eventInfo
	EventCategories []eventCategory
}

// reader is a request for texts that people will read.
type reader struct {
	Languages string `header:"Accept-Language"`
}

func (a policyAPI) events(_ context.Context, r reader) (eventsInfo, error) {
	lang := rest.LanguageFor(a.lang, r.Languages)
	var info eventsInfo
	for _, e := range notify.Events() {
		if e.ToldUsers() {
			info.Events = append(info.Events, eventInfo{string(e.Type), e.Category, e.Description[lang]})
		}
	}
	for _, c := range notify.Categories() {
		info.EventCategories = append(info.EventCategories, eventCategory{c.Category, c.Description[lang]})
	}
	return info, nil
}

// notificationPolicy is UserNotificationPolicy.
type notificationPolicy struct {
	Policy             map[string][]string // notifiers by type of event
	ChangesAllowed     bool
	AvailableNotifiers []string
}

func (a policyAPI) notification(ctx context.Context, r onUser) (notificationPolicy, error) {
	p, err := a.policies.Get(ctx, caller(ctx), string(r.ID), policy.Notification)
	answer := notificationPolicy{p.Notifiers, !p.Fixed, a.policies.Notifiers}
	if answer.Policy == nil {
		answer.Policy = map[string][]string{}
	}
	return answer, err
}

// setNotificationRequest holds a policy, by itself or as the Policy of the answer of the getter.
type setNotificationRequest struct {
	ID   userID `path:"id"`
	Body notifierMap
}

func (a policyAPI) setNotification(ctx context.Context, r setNotificationRequest) (rest.None, error) {
	if r.Body == nil {
		// Everywhere else an empty body counts as {}. Here {} erases the policy, so a body
		// that was lost on the way must not count as one.
		return rest.None{}, fault.New(fault.InvalidParameters, "the request body is missing: send an object of types of events with a list of notifiers each, or {} to erase the policy")
	}
	return rest.None{}, a.policies.SetNotifiers(ctx, caller(ctx), string(r.ID), r.Body)
}

// notifierMap are the notifiers by type of event. It is nil for a missing body.
type notifierMap map[string][]string

// FromValue implements rest.FromValue.
func (m *notifierMap) FromValue(value any) (err error) {
	*m, err = readNotifiers(value)
	return err
}

// readNotifiers reads a policy, by itself or as the Policy of the answer of the getter.
// Names of known events get the spelling of the catalogue.
func readNotifiers(body any) (map[string][]string, error) {
	wrong := func(what string) error {
		return fault.Newf(fault.InvalidParameters, "%s: want an object of types of events with a list of notifiers each, such as {\"UserPasswordChanged\": [\"Email\"]}", what)
	}
	given, ok := body.(map[string]any)
	if !ok {
		return nil, wrong("body")
	}
	for key, value := range given {
		if inner, is := value.(map[string]any); is && strings.EqualFold(key, "Policy") {
			given = inner
			break
		}
	}
	notifiers := make(map[string][]string, len(given))
	for event, value := range given {
		list, ok := value.([]any)
		if !ok && value != nil {
			return nil, wrong("Policy")
		}
		if known, ok := notify.EventByName(event); ok {
			event = string(known.Type)
		}
		if _, twice := notifiers[event]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "Policy: %s is there twice", event)
		}
		notifiers[event] = []string{}
		for _, n := range list {
			name, ok := n.(string)
			if !ok {
				return nil, wrong("Policy")
			}
			notifiers[event] = append(notifiers[event], name)
		}
	}
	return notifiers, nil
}

// failures are the events of failed operations, by the beginning of the operation's name.
// The first match counts. "" means no event: the operation changes nothing, or only sends
// something.
var failures = []struct {
	prefix string
	event  notify.EventType
}{
	{"Get", ""}, {"Check", ""}, {"Send", ""}, {"Resend", ""}, {"RequireUser", ""}, {"RevokeUserGrants", ""},
	{"RegisterUser", notify.UserCreateFail},
	{"ResetPassword", notify.UserPasswordChangeFail},
	{"AddUserPhone", notify.UserPhoneChangeFail},
	{"ConfirmUserPhone", notify.UserPhoneChangeFail},
	{"SubmitUserPhone", notify.UserPhoneChangeFail},
	{"SetUserPrimaryPhone", notify.UserPhoneChangeFail},
	{"SetUserNotificationPhone", notify.UserPhoneChangeFail},
	{"SetUserSecondaryAuthPhone", notify.UserPhoneChangeFail},
	{"SetUserMainPhone", notify.UserPhoneChangeFail},
	{"DeleteUserPhone", notify.UserPhoneChangeFail},
	{"", notify.UserAccountChangeFail},
}

// FailEvent returns the event of a failed operation of user management, "" for none.
func FailEvent(operation string) notify.EventType {
	if operation == "DeleteUser" { // other Delete operations remove something of a user
		return notify.UserDeleteFail
	}
	for _, f := range failures {
		if strings.HasPrefix(operation, f.prefix) {
			return f.event
		}
	}
	return ""
}
