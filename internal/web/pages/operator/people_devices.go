// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

func (a *API) deviceCommands() []command {
	devices := a.Devices
	begun := func(k device.KInit, err error) (*made, error) {
		if err != nil {
			return nil, err
		}
		return &made{Text: k.QRText, Picture: view.DataURL("image/gif", k.QR), Note: "device.scan"}, nil
	}
	order := func(f rest.Form) device.KInitOrder {
		return device.KInitOrder{Phone: f.Get("phone"), Email: f.Get("email")}
	}
	block := func(name string, lock bool, e effect.Set) command {
		return command{name: name, operation: "LockoutMyDssDevice", effects: does(e), plain: true, undo: map[bool]string{true: "device-unblock"}[lock], about: a.aboutDevice,
			do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
				rest.Detail(ctx, fmt.Sprintf("%s lock=%t", o.Of, lock))
				_, err := devices.SetBlocked(ctx, who, o.ID, o.Of, lock)
				return err
			})}
	}
	return []command{
		{name: "device-init", operation: "CreateMyDssKInit", effects: does(effect.GivesSecret | effect.AddsFactor), more: a.codeFields, possible: func(ctx context.Context, o *object) error {
			info, err := devices.Info(ctx, rest.Caller(ctx), o.ID)
			switch {
			case err != nil:
				return err
			case info.KInit != nil:
				return fault.New(fault.KInitExists, "the user has an initialization key for a new device: delete it first, or get it again")
			}
			return a.codeable(ctx, o)
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			return begun(devices.Init(ctx, rest.Caller(ctx), o.ID, order(f)))
		}},
		{name: "device-show", operation: "GetMyDssKInit", effects: does(effect.GivesSecret), possible: a.connecting, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			return begun(devices.GetKInit(ctx, rest.Caller(ctx), o.ID))
		}},
		{name: "device-send", operation: "SendMyDssKInit", effects: does(effect.GivesSecret), possible: a.pictured, more: a.pictureFields, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			return devices.SendKInit(ctx, who, o.ID, f.Get("email"))
		})},
		{name: "device-code", operation: "ResendMyDssKInitOtp", effects: does(effect.GivesSecret), more: a.codeFields, possible: func(ctx context.Context, o *object) error {
			if err := a.connecting(ctx, o); err != nil {
				return err
			}
			return a.codeable(ctx, o)
		}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			return devices.ResendCode(ctx, who, o.ID, order(f))
		})},
		{name: "device-cancel", operation: "DeleteMyDssKInit", effects: does(effect.None), plain: true, possible: a.connecting, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			return devices.DeleteKInit(ctx, who, o.ID)
		})},
		{name: "device-assign", operation: "AssignMyDssKey", effects: does(effect.AddsFactor), fields: []field{{name: "kid", required: true, hint: "field.hint.kid"}}, do: silent(func(ctx context.Context, who audit.Principal, o *object, f rest.Form) error {
			_, err := devices.Assign(ctx, who, o.ID, f.Get("kid"))
			return err
		})},
		{name: "device-verify", operation: "GetMyDssVerificationData", effects: does(effect.GivesSecret | effect.AddsFactor), about: a.aboutDevice, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			v, err := devices.BeginVerification(ctx, rest.Caller(ctx), o.ID, o.Of)
			if err != nil {
				return nil, err
			}
			return &made{Text: v.QRText, Picture: view.DataURL("image/gif", v.QR), Note: "device.verify"}, nil
		}},
		block("device-block", true, effect.EndsAccess), block("device-unblock", false, effect.AddsFactor),
		{name: "device-delete", operation: "DeleteMyDssKey", effects: does(effect.RemovesFactor), named: true, about: a.aboutDevice, do: silent(func(ctx context.Context, who audit.Principal, o *object, _ rest.Form) error {
			rest.Detail(ctx, o.Of)
			return devices.Delete(ctx, who, o.ID, o.Of)
		})},
	}
}

// aboutDevice describes a device of a user.
func (a *API) aboutDevice(ctx context.Context, o *object) (row, error) {
	info, err := a.Devices.Info(ctx, rest.Caller(ctx), o.ID)
	if err != nil {
		return row{}, err
	}
	if i := slices.IndexFunc(info.Devices, func(d device.Device) bool { return d.Kid == o.Of }); i >= 0 {
		o.Name = deviceName(&info.Devices[i])
		return rowOfDevice(&info.Devices[i]), nil
	}
	return row{}, fault.Newf(fault.NotFound, "the record has no device %.64q: it was deleted, or the link is wrong", o.Of)
}

// connecting returns the fault for a user of whom no device is being connected.
func (a *API) connecting(ctx context.Context, o *object) error {
	info, err := a.Devices.Info(ctx, rest.Caller(ctx), o.ID)
	if err == nil && info.KInit == nil {
		err = fault.New(fault.NotFound, "no device of the person is being connected: it is connected already, or the connection was cancelled or took too long")
	}
	return err
}

// codeKinds are the kinds of contacts that an activation code can go to.
func (a *API) codeKinds() (names []string) {
	for _, k := range contactKinds {
		if slices.Contains(a.Devices.Sending().Channels, k.kind.Channel) {
			names = append(names, k.name)
		}
	}
	return names
}

// takesCode reports whether an activation code can reach a user, or none is needed.
func (a *API) takesCode(ctx context.Context, u user.Info) (bool, error) {
	sending := a.Devices.Sending()
	if !sending.Code || !sending.Confirmed {
		return true, nil
	}
	names := a.codeKinds()
	for _, k := range contactKinds {
		if !slices.Contains(names, k.name) {
			continue
		}
		if has, err := a.hasConfirmed(ctx, u, k.kind); err != nil || has {
			return has, err
		}
	}
	return false, nil
}

// codeable returns the fault for a user whom no activation code can reach.
func (a *API) codeable(ctx context.Context, o *object) error {
	u, err := a.People.ByID(ctx, rest.Caller(ctx), o.ID)
	if err != nil {
		return err
	}
	takes, err := a.takesCode(ctx, u)
	if err == nil && !takes {
		err = fault.New(fault.ContactUnconfirmed, "the activation code needs a confirmed phone or e-mail of the person: add one in the record, and confirm it")
	}
	return err
}

// codeFields asks for the contacts that the activation code goes to, for none where there is no code.
// Where a code may go to any contact, it is typed.
func (a *API) codeFields(ctx context.Context, o *object) (fields []field, err error) {
	sending, names := a.Devices.Sending(), a.codeKinds()
	if !sending.Code {
		return nil, nil
	}
	var offered [][]contact.Contact
	for _, k := range contactKinds {
		if !slices.Contains(names, k.name) {
			continue
		}
		if !sending.Confirmed {
			fields = append(fields, field{name: k.name})
			continue
		}
		list, err := a.contactsOf(ctx, o.ID, k.kind)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			fields, offered = append(fields, field{name: k.name}), append(offered, list)
		}
	}
	for i, list := range offered {
		none := ""
		if len(offered) > 1 { // one of them is enough
			none = "device.no_code"
		}
		name := fields[i].name
		fields[i] = contactChoice(name, none, list)
		if i == 0 {
			fields[i].value = list[0].Value
		}
	}
	if len(fields) > 0 && sending.Confirmed {
		fields[0].hint = "field.hint.code_to"
	}
	return fields, nil
}

// pictured returns the fault for a user to whom the QR code of a device cannot be sent.
func (a *API) pictured(ctx context.Context, o *object) error {
	if err := a.connecting(ctx, o); err != nil {
		return err
	}
	sending := a.Devices.Sending()
	if !sending.Picture || !sending.Confirmed {
		return nil // the service says so
	}
	list, err := a.contactsOf(ctx, o.ID, contact.Email)
	if err == nil && len(list) == 0 {
		err = fault.New(fault.ContactUnconfirmed, "the person has no confirmed e-mail: add one in the record, and confirm it")
	}
	return err
}

// pictureFields ask for the e-mail that the QR code goes to.
func (a *API) pictureFields(ctx context.Context, o *object) ([]field, error) {
	if !a.Devices.Sending().Confirmed {
		return []field{{name: "email", required: true}}, nil
	}
	list, err := a.contactsOf(ctx, o.ID, contact.Email)
	return []field{contactChoice("email", "", list)}, err
}
