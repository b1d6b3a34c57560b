package app

import (
	"tamga/internal/adapter/mail"
	"tamga/internal/adapter/push"
	"tamga/internal/adapter/sms"
	"tamga/internal/config"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// Parts returns what the program has that brings settings of its own. A new part is one line here.
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
