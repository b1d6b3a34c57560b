// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"slices"
)

// Factor is something that a user signs in or confirms with. The values are those of
// Notice.Detail.
type Factor string

// The factors.
const (
	FactorPassword    Factor = "password"
	FactorMethod      Factor = "authentication method"
	FactorContact     Factor = "contact for codes"
	FactorToken       Factor = "token for one-time passwords"
	FactorDevice      Factor = "mobile device"
	FactorPasskey     Factor = "passkey"
	FactorCertificate Factor = "certificate for sign-in"
	FactorLogin       Factor = "login at another provider"
)

// factorNames are the names of factors in messages, by language.
var factorNames = map[Factor]map[string]string{
	FactorPassword:    {"ru": "пароль", "en": "password"},
	FactorMethod:      {"ru": "метод аутентификации", "en": "authentication method"},
	FactorContact:     {"ru": "телефон или почта для кодов", "en": "phone or e-mail for codes"},
	FactorToken:       {"ru": "токен одноразовых паролей", "en": "token for one-time passwords"},
	FactorDevice:      {"ru": "мобильное устройство", "en": "mobile device"},
	FactorPasskey:     {"ru": "ключ доступа", "en": "passkey"},
	FactorCertificate: {"ru": "сертификат для входа", "en": "certificate for sign-in"},
	FactorLogin:       {"ru": "вход через другую систему", "en": "login at another provider"},
}

// olderContacts orders the notice of a factor that is new or was replaced for each confirmed
// contact of the user but the new one. The policy of the user does not count: a thief of the
// account may have changed it.
func (s *Service) olderContacts(ctx context.Context, e Event, info EventInfo) error {
	var channels []Channel
	for _, channel := range s.Available() {
		if to := channel.Info().To; to == ToAddresses || to == ToNumbers {
			channels = append(channels, channel)
		}
	}
	_, err := s.tellUser(ctx, e, info, channels, func(ctx context.Context, userID string, channel Channel) ([]string, error) {
		list, err := s.deps.Recipients.ConfirmedAddresses(ctx, userID, channel)
		return slices.DeleteFunc(slices.Clone(list), func(to string) bool { return to == e.Except }), err
	})
	return err
}
