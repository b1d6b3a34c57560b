package app

import (
	"tamga/internal/adapter/mail"
	"tamga/internal/adapter/push"
	"tamga/internal/adapter/sms"
	"tamga/internal/config"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// Parts returns the parts of the program that have settings of their own: notifiers, and holders of
// keys. A new part is one line here.
func Parts() config.Parts {
	return config.Parts{
		Notifiers: []notify.Plugin{
			&mail.Settings{},
			&sms.SMPPSettings{},
			&sms.GatewaySettings{},
			&push.Settings{},
		},
		Holders: []vault.Plugin{
			vault.Software{},
		},
	}
}
