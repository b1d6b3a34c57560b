// SPDX-License-Identifier: Apache-2.0

package notify

// EventType is the name of an event in the specification.
type EventType string

// The events of this release that the interface family names.
const (
	UserCreated             EventType = "UserCreated"
	UserCreatedByAdmin      EventType = "UserCreatedByAdmin"
	UserCreateFail          EventType = "UserCreateFail"
	UserAccountChanged      EventType = "UserAccountChanged"
	UserAccountChangeFail   EventType = "UserAccountChangeFail"
	UserPasswordChanged     EventType = "UserPasswordChanged"
	UserPasswordChangeFail  EventType = "UserPasswordChangeFail"
	UserPhoneChangeFail     EventType = "UserPhoneChangeFail"
	UserPasswordReset       EventType = "UserPasswordReset"
	UserDeleted             EventType = "UserDeleted"
	UserDeleteFail          EventType = "UserDeleteFail"
	CertificatesRequested   EventType = "CertificatesRequested"
	RevokeRequestsRequested EventType = "RevokeRequestsRequested"
)

// Events of our own: the specifications have none for keys and certificates, except for
// requests.
const (
	CertificateIssued      EventType = "CertificateIssued"
	CertificateRejected    EventType = "CertificateRequestRejected"
	CertificateRevoked     EventType = "CertificateRevoked"
	CertificateHeld        EventType = "CertificateHeld"
	CertificateUnheld      EventType = "CertificateUnheld"
	CertificateDeleted     EventType = "CertificateDeleted"
	CertificatePinChanged  EventType = "CertificatePinChanged"
	CertificateKeyImported EventType = "CertificateKeyImported"
	CertificateKeyExported EventType = "CertificateKeyExported"
)

// UserFactorChanged is an event of our own: a factor of a user is new or was replaced. It
// goes to the older contacts of the user, whatever the policy says.
const UserFactorChanged EventType = "UserFactorChanged"

// Events of our own: requests of operators that wait. UserChangeWaits and
// UserChangeCancelled go to the contacts of the user, whatever the policy says.
const (
	UserChangeWaits     EventType = "UserChangeWaits"
	UserChangeCancelled EventType = "UserChangeCancelled"
	ApprovalRequested   EventType = "ApprovalRequested"
	ApprovalGiven       EventType = "ApprovalGiven"
	ApprovalRefused     EventType = "ApprovalRefused"
)

// Events of our own: archive time stamps of stored documents. The detail is the document, and the time is until when its
// signatures are good.
const (
	DocumentRenewed       EventType = "DocumentRenewed"
	DocumentRenewalFailed EventType = "DocumentRenewalFailed"
)

// Usage is the audience of an event.
type Usage string

// The usages of the specifications that this release has events of.
const (
	ForUser     Usage = "User"
	ForOperator Usage = "Operator"
)

// Events of our own: the states of a confirmation.
const (
	ConfirmationCreated   EventType = "ConfirmationCreated"
	ConfirmationRequested EventType = "ConfirmationRequested"
	ConfirmationGiven     EventType = "ConfirmationGiven"
	ConfirmationDeclined  EventType = "ConfirmationDeclined"
	ConfirmationCancelled EventType = "ConfirmationCancelled"
	ConfirmationExpired   EventType = "ConfirmationExpired"
	ConfirmationCompleted EventType = "ConfirmationCompleted"
	ConfirmationFailed    EventType = "ConfirmationFailed"
	// ConfirmationReported is none of the states: the user says that another person asks.
	ConfirmationReported EventType = "ConfirmationReported"
)

// EventInfo describes an event.
type EventInfo struct {
	Type        EventType
	Number      int    // of the interface family; 0 where none is public
	Category    string // name of an EventCategory
	Usage       Usage
	Description map[string]string // by language, "ru" and "en"
}

// ToldUsers reports whether users may choose to be notified of the event. They may for
// their deletion, although the specifications have it for operators: users learn of it in
// no other way.
func (e EventInfo) ToldUsers() bool { return e.Usage == ForUser || e.last() }

// last reports whether the user cannot be notified later. Such an event goes to the
// confirmed contacts of a user who has no notification contacts.
func (e EventInfo) last() bool { return e.Type == UserDeleted }

// toContacts reports whether the event goes to all confirmed contacts, whatever the policy
// of the user says.
func (e EventInfo) toContacts() bool {
	return e.Type == UserFactorChanged || e.Type == UserChangeWaits || e.Type == UserChangeCancelled
}

// security reports whether the event tells its user of a change that a thief of the account, or an
// operator alone, may have made. Its notices have budgets of their own, and the change is refused if
// one of them cannot be put into the outbox.
func (e EventInfo) security() bool {
	switch e.Type {
	case UserPasswordChanged, UserPasswordReset, UserDeleted:
		return true
	}
	return e.toContacts()
}

// EventCategory is a heading that groups events.
type EventCategory struct {
	Category    string
	Description map[string]string // by language, "ru" and "en"
}

// Categories returns the categories in their order.
func Categories() []EventCategory {
	return []EventCategory{
		{"UserAccount", map[string]string{"ru": "Учётная запись", "en": "User account"}},
		{"Authentication", map[string]string{"ru": "Аутентификация", "en": "Authentication"}},
		{"Certificates", map[string]string{"ru": "Сертификаты", "en": "Certificates"}},
		{"CertificatesV2", map[string]string{"ru": "Сертификаты (версия 2)", "en": "Certificates (version 2)"}},
	}
}

// Events returns the catalogue in its order.
func Events() []EventInfo {
	info := func(t EventType, number int, category string, usage Usage, ru, en string) EventInfo {
		return EventInfo{t, number, category, usage, map[string]string{"ru": ru, "en": en}}
	}
	return []EventInfo{
		info(UserCreated, 1, "UserAccount", ForUser, "Пользователь зарегистрирован", "The user is registered"),
		info(UserCreatedByAdmin, 2, "UserAccount", ForUser, "Пользователь зарегистрирован администратором", "The user is registered by an administrator"),
		info(UserCreateFail, 3, "UserAccount", ForOperator, "Пользователь не зарегистрирован", "A registration failed"),
		info(UserAccountChanged, 4, "UserAccount", ForUser, "Данные учётной записи изменены", "The account is changed"),
		info(UserAccountChangeFail, 5, "UserAccount", ForUser, "Данные учётной записи не изменены из-за ошибки", "A change of the account failed"),
		info(UserPasswordChanged, 6, "UserAccount", ForUser, "Пароль изменён", "The password is changed"),
		info(UserPasswordChangeFail, 7, "UserAccount", ForUser, "Пароль не изменён из-за ошибки", "A change of the password failed"),
		info(UserPhoneChangeFail, 8, "UserAccount", ForUser, "Номер телефона не изменён из-за ошибки", "A change of the phone number failed"),
		info(UserPasswordReset, 9, "UserAccount", ForUser, "Пароль сброшен", "The password is reset"),
		info(UserDeleted, 10, "UserAccount", ForOperator, "Учётная запись удалена", "The account is deleted"),
		info(UserDeleteFail, 11, "UserAccount", ForOperator, "Пользователь не удалён из-за ошибки", "A deletion of the user failed"),
		info(UserFactorChanged, 0, "UserAccount", ForUser, "Добавлено или заменено средство входа или подтверждения", "A means of sign-in or confirmation is new or was replaced"),
		info(UserChangeWaits, 0, "UserAccount", ForUser, "Изменение учётной записи вступит в силу позже, его можно отменить", "A change of the account takes effect later and can be cancelled"),
		info(UserChangeCancelled, 0, "UserAccount", ForUser, "Изменение учётной записи отменено пользователем", "A change of the account was cancelled by the user"),
		info(ApprovalRequested, 0, "UserAccount", ForOperator, "Действие оператора ждёт одобрения другого оператора", "An action of an operator waits for the approval of another one"),
		info(ApprovalGiven, 0, "UserAccount", ForOperator, "Действие оператора одобрено другим оператором", "An action of an operator was approved by another one"),
		info(ApprovalRefused, 0, "UserAccount", ForOperator, "Действие оператора отклонено", "An action of an operator was refused"),
		info(CertificatesRequested, 0, "Certificates", ForUser, "Создан запрос на сертификат", "A certificate is requested"),
		info(RevokeRequestsRequested, 0, "Certificates", ForUser, "Создан запрос на прекращение действия сертификата", "The revocation of a certificate is requested"),
		info(CertificateIssued, 0, "Certificates", ForUser, "Сертификат выпущен", "A certificate is issued"),
		info(CertificateRejected, 0, "Certificates", ForUser, "Запрос на сертификат отклонён", "A request for a certificate is rejected"),
		info(CertificateRevoked, 0, "Certificates", ForUser, "Действие сертификата прекращено", "A certificate is revoked"),
		info(CertificateHeld, 0, "Certificates", ForUser, "Действие сертификата приостановлено", "A certificate is put on hold"),
		info(CertificateUnheld, 0, "Certificates", ForUser, "Действие сертификата возобновлено", "A certificate is good again"),
		info(CertificateDeleted, 0, "Certificates", ForUser, "Сертификат удалён", "A certificate is deleted"),
		info(CertificatePinChanged, 0, "Certificates", ForUser, "ПИН-код ключа изменён", "The PIN of a key is changed"),
		info(CertificateKeyImported, 0, "Certificates", ForUser, "Ключ с сертификатом импортирован", "A key with its certificate is imported"),
		info(CertificateKeyExported, 0, "Certificates", ForUser, "Ключ с сертификатом экспортирован", "A key with its certificate is exported"),
		info(ConfirmationCreated, 0, "Authentication", ForUser, "Создана операция, которую нужно подтвердить", "An operation waits to be confirmed"),
		info(ConfirmationRequested, 0, "Authentication", ForUser, "Запрошено подтверждение", "A confirmation is requested"),
		info(ConfirmationGiven, 0, "Authentication", ForUser, "Операция подтверждена", "An operation is confirmed"),
		info(ConfirmationDeclined, 0, "Authentication", ForUser, "Операция отклонена", "An operation is declined"),
		info(ConfirmationCancelled, 0, "Authentication", ForUser, "Операция отменена", "An operation is cancelled"),
		info(ConfirmationExpired, 0, "Authentication", ForUser, "Истёк срок подтверждения операции", "An operation has expired"),
		info(ConfirmationCompleted, 0, "Authentication", ForUser, "Подтверждённая операция выполнена", "A confirmed operation is carried out"),
		info(ConfirmationFailed, 0, "Authentication", ForUser, "Операция завершилась с ошибкой", "An operation with a confirmation has failed"),
		info(DocumentRenewed, 0, "Certificates", ForUser, "Архивный штамп времени документа продлён", "The archive time stamp of a document was renewed"),
		info(DocumentRenewalFailed, 0, "Certificates", ForUser, "Архивный штамп времени документа продлить не удалось", "The archive time stamp of a document cannot be renewed"),
		info(ConfirmationReported, 0, "Authentication", ForOperator, "Пользователь сообщил, что подтверждение запросил не он", "The user reports that another person asks for a confirmation"),
	}
}

// EventByType finds an event of the catalogue.
func EventByType(t EventType) (EventInfo, bool) {
	for _, e := range Events() {
		if e.Type == t {
			return e, true
		}
	}
	return EventInfo{}, false
}
