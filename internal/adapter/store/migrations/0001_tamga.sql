-- The tables of Tamga.
--
-- The comment of package store says how times, identifiers and texts are stored. What holds for
-- several tables:
--
--   - A text that is sorted or paged through is compared by its bytes: COLLATE {{binary}}.
--   - A column named sealed, or described as sealed, is encrypted under a master key.
--   - lease and leased_until let one process work on a row at a time: package lease.
--   - A column has a default only where statements leave it out.


-- Users

CREATE TABLE user_groups (
	name        TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	title       TEXT   NOT NULL,
	created_at  BIGINT NOT NULL
);

-- A user without a login has the login '', and in login_folded a text that no login folds to.
-- login_folded has no letter case, so logins that differ in letter case only are equal. lock_at is
-- when a delayed lock takes effect, or when the lock began; 0 without one. Every check compares it
-- with the clock.
CREATE TABLE users (
	id             TEXT    NOT NULL PRIMARY KEY,
	login          TEXT    NOT NULL,
	login_folded   TEXT COLLATE {{binary}} NOT NULL UNIQUE,
	display_name   TEXT    NOT NULL,
	group_name     TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name),
	operator       BOOLEAN NOT NULL,
	locked         BOOLEAN NOT NULL,
	lock_at        BIGINT  NOT NULL,
	unapproved     BOOLEAN NOT NULL,
	created_at     BIGINT  NOT NULL,
	last_login_at  BIGINT  NOT NULL DEFAULT 0
);
-- The index itself has what searches in a group compare. In a table of a million users the users
-- of a group are on almost as many pages.
CREATE INDEX users_in_group ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at);

-- The groups that an operator is responsible for.
CREATE TABLE operator_groups (
	user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	group_name  TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name),
	PRIMARY KEY (user_id, group_name)
);

-- Distinguished names of users. name is the text that is shown, name_folded the text that searches
-- read. Equal names have the same digest name_key. unique_key is name_key if the configuration wanted
-- unique names when this name was set, and otherwise NULL, which is equal to no other.
CREATE TABLE distinguished_names (
	user_id      TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	name         TEXT      NOT NULL,
	name_folded  TEXT      NOT NULL,
	name_key     {{bytes}} NOT NULL,
	unique_key   {{bytes}} UNIQUE
) {{clustered}};
CREATE INDEX distinguished_names_by_key ON distinguished_names (name_key);

-- The components of these names, by object identifier. The interface names a component by a number
-- of the configuration, which may change.
CREATE TABLE name_components (
	user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	oid      TEXT NOT NULL,
	value    TEXT NOT NULL,
	PRIMARY KEY (user_id, oid)
) {{clustered}};

-- Logins of users at other identity providers.
CREATE TABLE external_logins (
	user_id        TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	issuer         TEXT NOT NULL,
	issuer_folded  TEXT COLLATE {{binary}} NOT NULL,
	login          TEXT NOT NULL,
	login_folded   TEXT NOT NULL,
	PRIMARY KEY (user_id, issuer_folded),
	UNIQUE (issuer_folded, login_folded)
) {{clustered}};

-- The words that a search for people compares, and the users who have them. Package user makes words
-- of texts. No row refers to users: the index would be as large as the table. Who deletes a user
-- deletes the words first.
CREATE TABLE user_words (
	word     TEXT COLLATE {{binary}} NOT NULL,
	user_id  TEXT NOT NULL,
	PRIMARY KEY (word, user_id)
) {{clustered}};

-- The same words by user and by source, such as the login or a contact: words, with a blank before
-- each. A word may have several sources, so that the rows of user_words that end with a source are
-- those that no other row of the user has here.
CREATE TABLE user_texts (
	user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	source   TEXT COLLATE {{binary}} NOT NULL,
	words    TEXT NOT NULL,
	PRIMARY KEY (user_id, source)
) {{clustered}};


-- Credentials

-- How a user may sign in. level is the one that was given: 1 for a first step, 2 for a second.
CREATE TABLE user_methods (
	user_id  TEXT   NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	method   TEXT   NOT NULL,
	level    BIGINT NOT NULL,
	PRIMARY KEY (user_id, method)
) {{clustered}};
-- A search for users by a method that few have begins with these users.
CREATE INDEX user_methods_by_method ON user_methods (method, user_id);

CREATE TABLE passwords (
	user_id  TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	encoded  TEXT NOT NULL
);

-- Attempts with a password since window_from that were begun and not found right. login is a hash of
-- the typed login, which may belong to no user.
CREATE TABLE login_failures (
	login         {{bytes}} NOT NULL PRIMARY KEY,
	failures      BIGINT    NOT NULL,
	window_from   BIGINT    NOT NULL,
	locked_until  BIGINT    NOT NULL
);
CREATE INDEX login_failures_by_window ON login_failures (window_from);

-- Attempts with a secret of a known user.
CREATE TABLE user_failures (
	user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
) {{clustered}};
CREATE INDEX user_failures_by_window ON user_failures (window_from);

-- The same two counters for trusted callers.
CREATE TABLE trusted_login_failures (
	login         {{bytes}} NOT NULL PRIMARY KEY,
	failures      BIGINT    NOT NULL,
	window_from   BIGINT    NOT NULL,
	locked_until  BIGINT    NOT NULL
);
CREATE INDEX trusted_login_failures_by_window ON trusted_login_failures (window_from);

CREATE TABLE trusted_user_failures (
	user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
) {{clustered}};
CREATE INDEX trusted_user_failures_by_window ON trusted_user_failures (window_from);

-- Certificates that users sign in with, by the SHA-256 of the certificate.
CREATE TABLE sign_in_certificates (
	thumbprint  {{bytes}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	subject     TEXT      NOT NULL,
	issuer      TEXT      NOT NULL,
	serial      TEXT      NOT NULL,
	not_after   BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL
);
CREATE INDEX sign_in_certificates_by_user ON sign_in_certificates (user_id);

-- Tokens that make one-time passwords: devices, which may be in stock, and secrets of apps, which are
-- deleted with their user. serial_key is the serial number without letter case. sealed has the secret
-- and its parameters. watermark, the last step of which a code was accepted, is in sealed too; one
-- statement compares it here. failures counts wrong codes in a row. behind means that a restore may
-- have moved the counter back, so two codes in a row are needed.
CREATE TABLE oath_tokens (
	serial_key    TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	serial        TEXT      NOT NULL,
	user_id       TEXT      UNIQUE REFERENCES users (id) ON DELETE SET NULL,
	type          TEXT      NOT NULL,
	app           BOOLEAN   NOT NULL,
	watermark     BIGINT    NOT NULL,
	behind        BOOLEAN   NOT NULL,
	failures      BIGINT    NOT NULL,
	locked_until  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	assigned_at   BIGINT    NOT NULL,
	sealed        {{bytes}} NOT NULL
);
CREATE INDEX oath_tokens_unassigned ON oath_tokens (app) WHERE user_id IS NULL;

-- Passkeys: keys of WebAuthn. id is the identifier of the credential in Base64url. sealed has the
-- public key and its user. counter is the one of the last signature.
CREATE TABLE passkeys (
	id          TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	name        TEXT      NOT NULL,
	counter     BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL,
	used_at     BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);

-- Passkeys that users are creating, one for each user.
CREATE TABLE passkey_registrations (
	user_id     TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	session     TEXT      NOT NULL,
	name        TEXT      NOT NULL,
	challenge   {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX passkey_registrations_by_expiry ON passkey_registrations (expires_at);


-- Contacts

-- Phones and e-mail addresses of users. Contacts with the same normal form are equal. value is the
-- text that is shown.
CREATE TABLE contacts (
	user_id         TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	type            TEXT    NOT NULL,
	normal          TEXT COLLATE {{binary}} NOT NULL,
	value           TEXT    NOT NULL,
	confirmed       BOOLEAN NOT NULL,
	is_primary      BOOLEAN NOT NULL,
	notification    BOOLEAN NOT NULL,
	secondary_auth  BOOLEAN NOT NULL,
	created_at      BIGINT  NOT NULL,
	PRIMARY KEY (user_id, type, normal)
) {{clustered}};
CREATE INDEX contacts_by_value ON contacts (normal, type);
-- A primary contact identifies one user. A user has one primary contact of a type, and one that
-- receives the codes.
CREATE UNIQUE INDEX contacts_primary ON contacts (normal, type) WHERE is_primary;
CREATE UNIQUE INDEX contacts_primary_of_user ON contacts (user_id, type) WHERE is_primary;
CREATE UNIQUE INDEX contacts_secondary_auth_of_user ON contacts (user_id, type) WHERE secondary_auth;

-- One-time codes. mac is an HMAC of the code. Its key is sealed.
CREATE TABLE one_time_codes (
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	purpose     TEXT      NOT NULL,
	type        TEXT      NOT NULL,
	normal      TEXT COLLATE {{binary}} NOT NULL,
	sealed_key  {{bytes}} NOT NULL,
	mac         {{bytes}} NOT NULL,
	attempts    BIGINT    NOT NULL,
	issued_at   BIGINT    NOT NULL,
	expires_at  BIGINT    NOT NULL,
	PRIMARY KEY (user_id, purpose, type, normal)
);
CREATE INDEX one_time_codes_by_expiry ON one_time_codes (expires_at);


-- Mobile devices

-- user_id is NULL for a device that waits for a user. sealed has the key and the state of the device.
-- number is the one of the last message from the device.
CREATE TABLE devices (
	kid         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      REFERENCES users (id) ON DELETE CASCADE,
	number      BIGINT    NOT NULL,
	not_after   BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX devices_by_user ON devices (user_id);
CREATE INDEX devices_anonymous ON devices (not_after) WHERE user_id IS NULL;

-- Initializations of devices that are not registered yet, one for each user.
CREATE TABLE device_kinits (
	user_id     TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	kid         TEXT COLLATE {{binary}} NOT NULL UNIQUE,
	expires_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX device_kinits_by_expiry ON device_kinits (expires_at);

-- Verifications of devices that have begun, one for each device. hash is the SHA-256 of the nonce.
CREATE TABLE device_nonces (
	kid         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY REFERENCES devices (kid) ON DELETE CASCADE,
	hash        {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX device_nonces_by_expiry ON device_nonces (expires_at);

-- Private keys by which devices know the service, one for each algorithm.
CREATE TABLE device_service_keys (
	algorithm   TEXT      NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL
);

-- The keys before these, until until_at: at most one for each algorithm. digest is the SHA-256 of the
-- public key. statement introduces the new key and is signed with this one.
CREATE TABLE former_device_service_keys (
	algorithm  TEXT      NOT NULL PRIMARY KEY,
	digest     {{bytes}} NOT NULL,
	sealed     {{bytes}} NOT NULL,
	statement  TEXT      NOT NULL,
	until_at   BIGINT    NOT NULL
);


-- The built-in authority

-- Certificate authorities with their current CRL. holder is the name of the holder of the private key
-- in the configuration.
CREATE TABLE authorities (
	name         TEXT      NOT NULL PRIMARY KEY,
	holder       TEXT      NOT NULL,
	suite        TEXT      NOT NULL,
	sealed       {{bytes}} NOT NULL,
	created_at   BIGINT    NOT NULL,
	crl_number   BIGINT    NOT NULL,
	crl_at       BIGINT    NOT NULL,
	certificate  {{bytes}} NOT NULL,
	crl          {{bytes}} NOT NULL
);
-- Every signature and verification reads the numbers and times of the CRLs. Rows of SQLite also have
-- the CRLs, of hundreds of kilobytes each.
{{sqlite}}CREATE INDEX authority_states ON authorities (name, crl_number, crl_at);

-- Time-stamping services and OCSP responders that an authority has certified. The highest generation
-- of a name is in use. A delegate has no CRL.
CREATE TABLE authority_delegates (
	name         TEXT      NOT NULL,
	generation   BIGINT    NOT NULL,
	authority    TEXT      NOT NULL REFERENCES authorities (name),
	holder       TEXT      NOT NULL,
	suite        TEXT      NOT NULL,
	sealed       {{bytes}} NOT NULL,
	certificate  {{bytes}} NOT NULL,
	created_at   BIGINT    NOT NULL,
	PRIMARY KEY (name, generation)
);

-- Certificates of a root by another generation of the same root. name is SUBJECT-by-ISSUER.
CREATE TABLE cross_certificates (
	name         TEXT      NOT NULL PRIMARY KEY,
	certificate  {{bytes}} NOT NULL,
	created_at   BIGINT    NOT NULL
);

-- All certificates that the authorities issued. A serial number is unique over all of them. revoked_at
-- and reason are 0 without a revocation. A row stays when its user is deleted, so that the revocation
-- stays.
CREATE TABLE issued_certificates (
	serial      {{bytes}} NOT NULL PRIMARY KEY,
	authority   TEXT      NOT NULL REFERENCES authorities (name),
	not_after   BIGINT    NOT NULL,
	issued_at   BIGINT    NOT NULL,
	revoked_at  BIGINT    NOT NULL,
	reason      BIGINT    NOT NULL
);
CREATE INDEX issued_certificates_revoked ON issued_certificates (authority, serial) WHERE revoked_at <> 0;
-- Metrics count the certificates that end soon.
CREATE INDEX issued_certificates_by_end ON issued_certificates (not_after);


-- Keys and certificates of users

-- Private keys. holder is as in authorities. pin_failures counts attempts that were begun and not found
-- right.
CREATE TABLE keys (
	id            TEXT      NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	holder        TEXT      NOT NULL,
	suite         TEXT      NOT NULL,
	sealed        {{bytes}} NOT NULL,
	has_pin       BOOLEAN   NOT NULL,
	pin_failures  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL
);
CREATE INDEX keys_by_user ON keys (user_id);

-- Keys whose rows are deleted and which their holders must still destroy. The holder software keeps
-- nothing outside of the row of a key, so its keys are never here.
CREATE TABLE deleted_keys (
	id       TEXT      NOT NULL PRIMARY KEY,
	holder   TEXT      NOT NULL,
	suite    TEXT      NOT NULL,
	sealed   {{bytes}} NOT NULL,
	has_pin  BOOLEAN   NOT NULL
);

-- Values that clients store with keys.
CREATE TABLE key_parameters (
	key_id  TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
	name    TEXT NOT NULL,
	value   TEXT NOT NULL,
	PRIMARY KEY (key_id, name)
);

-- Certificates. Clients send id as CertificateId. An outside certificate is one of another authority:
-- issued_certificates does not have its serial number, and two of them may have the same one. status_*
-- is what that authority last said: when and why it revoked the certificate, 0 for not at all, and when
-- to ask again. Pages show it; signatures ask the authority. revocation_comment is the text that the
-- user gave for the revocation or the hold.
CREATE TABLE certificates (
	id                  {{identity}},
	user_id             TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	key_id              TEXT      NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
	certificate         {{bytes}} NOT NULL,
	serial              {{bytes}} NOT NULL,
	friendly_name       TEXT      NOT NULL,
	created_at          BIGINT    NOT NULL,
	outside             BOOLEAN   NOT NULL,
	status_revoked_at   BIGINT    NOT NULL DEFAULT 0,
	status_reason       BIGINT    NOT NULL DEFAULT 0,
	status_due_at       BIGINT    NOT NULL DEFAULT 0,
	revocation_comment  TEXT      NOT NULL DEFAULT '',
	UNIQUE (user_id, id)
);
CREATE INDEX certificates_by_key ON certificates (key_id);
CREATE UNIQUE INDEX certificates_by_serial ON certificates (serial) WHERE NOT outside;
CREATE INDEX certificates_outside ON certificates (id) WHERE outside;
CREATE INDEX certificates_outside_by_serial ON certificates (serial) WHERE outside;

-- The default certificate of a user, which is always one of the user's own.
CREATE TABLE default_certificates (
	user_id         TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	certificate_id  BIGINT NOT NULL,
	FOREIGN KEY (user_id, certificate_id) REFERENCES certificates (user_id, id) ON DELETE CASCADE
);

-- Requests for certificates and for revocations. type and status are numbers of the interface. key_id is
-- the key of a pending request for a certificate. certificate_id is the certificate that was issued; before
-- that, the one to renew or to revoke. life is in milliseconds, 0 for the one of the authority.
CREATE TABLE certificate_requests (
	id              {{identity}},
	user_id         TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	type            BIGINT    NOT NULL,
	status          BIGINT    NOT NULL,
	authority       BIGINT    NOT NULL,
	key_id          TEXT      REFERENCES keys (id) ON DELETE SET NULL,
	certificate_id  BIGINT    NOT NULL,
	renews          BIGINT    NOT NULL,
	request         {{bytes}} NOT NULL,
	life            BIGINT    NOT NULL,
	reason          BIGINT    NOT NULL,
	comment         TEXT      NOT NULL,
	created_at      BIGINT    NOT NULL,
	decided_at      BIGINT    NOT NULL
);
CREATE INDEX certificate_requests_by_user ON certificate_requests (user_id, id);
CREATE INDEX certificate_requests_by_status ON certificate_requests (status, id);
CREATE INDEX certificate_requests_by_key ON certificate_requests (key_id);
-- A user has one pending request for a certificate: status 2 is pending, type 0 a certificate.
CREATE UNIQUE INDEX certificate_requests_pending ON certificate_requests (user_id) WHERE status = 2 AND type = 0;


-- Tokens and sign-ins

-- Private keys that sign tokens. The newest one signs.
CREATE TABLE signing_keys (
	id          TEXT      NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL
);

-- Access tokens, and tokens of confirmations. actor_id is the operator who obtained the token for another
-- user, '' for a token that its user obtained. grant_id is the grant that the token came from, '' for
-- none. confirmation is the one that a confirmed token was issued for, '' for an access token. second_step
-- means that the sign-in had a second step, or a confirmation in its place.
CREATE TABLE access_tokens (
	id            TEXT    NOT NULL PRIMARY KEY,
	user_id       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id     TEXT    NOT NULL,
	method        TEXT    NOT NULL,
	scope         TEXT    NOT NULL,
	actor_id      TEXT    NOT NULL,
	grant_id      TEXT    NOT NULL,
	confirmation  TEXT    NOT NULL,
	second_step   BOOLEAN NOT NULL,
	signed_in_at  BIGINT  NOT NULL,
	created_at    BIGINT  NOT NULL,
	expires_at    BIGINT  NOT NULL,
	revoked       BOOLEAN NOT NULL
);
CREATE INDEX access_tokens_by_user ON access_tokens (user_id);
CREATE INDEX access_tokens_by_actor ON access_tokens (actor_id) WHERE actor_id <> '';
CREATE INDEX access_tokens_by_grant ON access_tokens (grant_id) WHERE grant_id <> '';
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

-- Grants: one row for all refresh tokens that follow each other. id is the one of the first access token.
-- handle and secret are SHA-256 of the two parts of a refresh token. The first part stays, the second one
-- is valid once.
CREATE TABLE grants (
	handle        {{bytes}} NOT NULL PRIMARY KEY,
	id            TEXT      NOT NULL UNIQUE,
	secret        {{bytes}} NOT NULL,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id     TEXT      NOT NULL,
	scope         TEXT      NOT NULL,
	method        TEXT      NOT NULL,
	login_only    BOOLEAN   NOT NULL,
	second_step   BOOLEAN   NOT NULL,
	signed_in_at  BIGINT    NOT NULL,
	refreshed_at  BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL
);
CREATE INDEX grants_by_user ON grants (user_id);
CREATE INDEX grants_by_expiry ON grants (expires_at);

-- Authorization codes, by the SHA-256 of the code. login_only means that the client asked for no resource.
-- spent_at is 0 until the code is exchanged, and token_id is then the token that it gave. A code that was
-- made for a valid access token has that token in parent_id, its sign-in in grant_id (as in access_tokens),
-- and its end in ends_at; a code that a sign-in made has '' and 0 there.
CREATE TABLE authorization_codes (
	hash          {{bytes}} NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id     TEXT      NOT NULL,
	redirect_uri  TEXT      NOT NULL,
	scope         TEXT      NOT NULL,
	method        TEXT      NOT NULL,
	thumbprint    {{bytes}} NOT NULL,
	granted       BOOLEAN   NOT NULL,
	login_only    BOOLEAN   NOT NULL,
	second_step   BOOLEAN   NOT NULL,
	nonce         TEXT      NOT NULL,
	challenge     TEXT      NOT NULL,
	signed_in_at  BIGINT    NOT NULL,
	grant_id      TEXT      NOT NULL,
	parent_id     TEXT      NOT NULL,
	ends_at       BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	spent_at      BIGINT    NOT NULL,
	token_id      TEXT      NOT NULL
);
CREATE INDEX authorization_codes_by_user ON authorization_codes (user_id);
CREATE INDEX authorization_codes_by_grant ON authorization_codes (grant_id) WHERE grant_id <> '';
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);

-- Browsers that are at an identity provider whose answer is posted (SAML). handle is the SHA-256 of the
-- value that comes back with the browser. ticket is sealed for that browser. returns_to is the address of
-- the client. ended means that the answer was taken: the row stays until it expires, so that the answer
-- is not taken twice.
CREATE TABLE external_visits (
	handle      {{bytes}} NOT NULL PRIMARY KEY,
	ticket      TEXT      NOT NULL,
	returns_to  TEXT      NOT NULL,
	ended       BOOLEAN   NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX external_visits_by_expiry ON external_visits (expires_at);


-- Confirmations

-- Confirmations of operations, and second steps of sign-ins. The confirmation of an operation has the
-- identifier of the operation. what is the digest of the fields that the user confirms. round counts
-- challenges; sent_at and answer_before are the ones of the last challenge. due_at is when the record
-- expires in its present state. ended_at is 0 while the record is open. callback is the address that the
-- client named, '' for none. origin is the network that a sign-in came from, '' if it is not known.
CREATE TABLE confirmations (
	id               TEXT      NOT NULL PRIMARY KEY,
	ref_id           TEXT      NOT NULL UNIQUE,
	user_id          TEXT      NOT NULL,
	client_id        TEXT      NOT NULL,
	operator         TEXT      NOT NULL,
	sign_in          TEXT      NOT NULL,
	origin           TEXT      NOT NULL,
	purpose          TEXT      NOT NULL,
	action           TEXT      NOT NULL,
	documents        BIGINT    NOT NULL,
	what             {{bytes}} NOT NULL,
	bytes            BIGINT    NOT NULL,
	callback         TEXT      NOT NULL DEFAULT '',
	state            TEXT      NOT NULL,
	method           TEXT      NOT NULL,
	address          TEXT      NOT NULL,
	label            TEXT      NOT NULL,
	number           TEXT      NOT NULL,
	round            BIGINT    NOT NULL,
	sent_at          BIGINT    NOT NULL,
	answer_before    BIGINT    NOT NULL,
	attempts         BIGINT    NOT NULL,
	resends          BIGINT    NOT NULL,
	declined         TEXT      NOT NULL,
	code             TEXT      NOT NULL,
	message          TEXT      NOT NULL,
	created_at       BIGINT    NOT NULL,
	updated_at       BIGINT    NOT NULL,
	confirm_before   BIGINT    NOT NULL,
	confirmed_at     BIGINT    NOT NULL,
	complete_before  BIGINT    NOT NULL,
	due_at           BIGINT    NOT NULL,
	ended_at         BIGINT    NOT NULL
);
CREATE INDEX confirmations_open ON confirmations (user_id, due_at) WHERE ended_at = 0;
CREATE INDEX confirmations_due ON confirmations (due_at) WHERE ended_at = 0;
CREATE INDEX confirmations_ended ON confirmations (ended_at) WHERE ended_at <> 0;
-- Operators list what is under way for all users, the oldest first.
CREATE INDEX confirmations_under_way ON confirmations (created_at, id) WHERE ended_at = 0;

-- The large part of a confirmation. offline is the answer that a device without a network gives, sealed,
-- and empty after the end. outline describes the documents and the parameters of the operation for as
-- long as the record is stored.
CREATE TABLE confirmation_contents (
	id        TEXT      NOT NULL PRIMARY KEY,
	fields    {{bytes}} NOT NULL,
	shown     {{bytes}} NOT NULL,
	outline   {{bytes}} NOT NULL,
	offline   {{bytes}} NOT NULL,
	approval  {{bytes}} NOT NULL,
	result    {{bytes}} NOT NULL
);

-- Open confirmations of each user and purpose, for the quotas.
CREATE TABLE confirmation_usage (
	user_id  TEXT   NOT NULL,
	purpose  TEXT   NOT NULL,
	records  BIGINT NOT NULL,
	bytes    BIGINT NOT NULL,
	PRIMARY KEY (user_id, purpose)
) {{clustered}};

-- Wrong answers of each user and method, over all confirmations.
CREATE TABLE confirmation_failures (
	user_id       TEXT   NOT NULL,
	method        TEXT   NOT NULL,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL,
	PRIMARY KEY (user_id, method)
) {{clustered}};
CREATE INDEX confirmation_failures_by_window ON confirmation_failures (window_from);

-- Right answers, for clients that did not get the reply and send the same answer again. sealed has a MAC
-- of the answer, the network that it came from, and the token of a sign-in.
CREATE TABLE confirmation_answers (
	id          TEXT      NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX confirmation_answers_by_expiry ON confirmation_answers (expires_at);

-- Sign-ins that the devices of a user were asked to confirm, one row for each challenge. A row counts until
-- expires_at.
CREATE TABLE confirmation_pushes (
	user_id     TEXT   NOT NULL,
	challenge   TEXT   NOT NULL,
	expires_at  BIGINT NOT NULL,
	PRIMARY KEY (user_id, challenge)
) {{clustered}};
CREATE INDEX confirmation_pushes_by_expiry ON confirmation_pushes (expires_at);


-- Operations

-- Operations of users: package operation. plan, secret (sealed) and contents, the name of a stored object,
-- are what the operation needs to be carried out, and empty after its end. answer is a small result,
-- sealed. results is the name of a stored object with a larger one. bytes is the size of contents or
-- results that counts in the quota. start_after is how many milliseconds after its confirmation the operation
-- is carried out without a request, -1 for never. due_at is when it is carried out next, 0 for never.
-- keep_until is 0 until the end.
CREATE TABLE operations (
	id               TEXT      NOT NULL PRIMARY KEY,
	kind             TEXT      NOT NULL,
	form             TEXT      NOT NULL,
	purpose          TEXT      NOT NULL,
	user_id          TEXT      NOT NULL,
	client_id        TEXT      NOT NULL,
	owner            {{bytes}} NOT NULL,
	action           TEXT      NOT NULL,
	state            TEXT      NOT NULL,
	is_async         BOOLEAN   NOT NULL,
	callback         TEXT      NOT NULL,
	code             TEXT      NOT NULL,
	message          TEXT      NOT NULL,
	attempts         BIGINT    NOT NULL,
	start_after      BIGINT    NOT NULL,
	due_at           BIGINT    NOT NULL,
	lease            TEXT      NOT NULL,
	leased_until     BIGINT    NOT NULL,
	created_at       BIGINT    NOT NULL,
	updated_at       BIGINT    NOT NULL,
	confirm_before   BIGINT    NOT NULL,
	confirmed_at     BIGINT    NOT NULL,
	complete_before  BIGINT    NOT NULL,
	completed_at     BIGINT    NOT NULL,
	keep_until       BIGINT    NOT NULL,
	bytes            BIGINT    NOT NULL,
	contents         TEXT      NOT NULL,
	results          TEXT      NOT NULL,
	parameters       TEXT      NOT NULL,
	description      TEXT      NOT NULL,
	documents        {{bytes}} NOT NULL,
	plan             {{bytes}} NOT NULL,
	secret           {{bytes}} NOT NULL,
	answer           {{bytes}} NOT NULL
);
CREATE INDEX operations_active ON operations (user_id, created_at) WHERE keep_until = 0;
CREATE INDEX operations_due ON operations (due_at) WHERE due_at <> 0;
CREATE INDEX operations_ending ON operations (complete_before) WHERE keep_until = 0;
CREATE INDEX operations_bytes ON operations (user_id, bytes) WHERE bytes > 0;
CREATE INDEX operations_kept ON operations (keep_until) WHERE keep_until <> 0;
-- Operators list what is under way for all users, the oldest first.
CREATE INDEX operations_under_way ON operations (created_at, id) WHERE keep_until = 0;
-- Each operation that is carried out leaves dead entries at the beginning of operations_due, where the search
-- for the next one begins. By default they stay until a fifth of the table has changed.
{{postgres}}ALTER TABLE operations SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);


-- Documents

-- Stored documents and uploads. state is 0 for an upload, which belongs to its uploader until
-- leased_until, 1 for a document, and 2 for a document or upload that has ended: its object is removed,
-- then its row. blob is the name of the object, bytes its size, or what an upload may take. The row exists
-- before the first byte of the object and after the last one. expires_at is 0 for never. sealed_key is the
-- key of an encrypted object if it was sealed again, under a later master key than in the head of the
-- object; empty: only the head has it. content is a small object, as it would be stored under the name in
-- blob; empty: it is stored there.
CREATE TABLE documents (
	id            TEXT      NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL,
	state         BIGINT    NOT NULL,
	leased_until  BIGINT    NOT NULL,
	blob          TEXT      NOT NULL,
	bytes         BIGINT    NOT NULL,
	name          TEXT      NOT NULL,
	type          TEXT      NOT NULL,
	parent        TEXT      NOT NULL,
	linked        TEXT      NOT NULL,
	extra         TEXT      NOT NULL,
	size          BIGINT    NOT NULL,
	hash          {{bytes}} NOT NULL,
	hash_name     TEXT      NOT NULL,
	uploaded_at   BIGINT    NOT NULL,
	accessed_at   BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	sealed_key    {{bytes}} NOT NULL DEFAULT '',
	content       {{bytes}} NOT NULL DEFAULT ''
);
-- Encrypted content cannot be compressed.
{{postgres}}ALTER TABLE documents ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX documents_by_user ON documents (user_id, id);
CREATE INDEX documents_by_hash ON documents (user_id, hash);
-- Pages list the documents of a user with the newest first.
CREATE INDEX documents_newest ON documents (user_id, uploaded_at, id) WHERE state = 1;
-- Sweeps look for these, which are few at any time.
CREATE INDEX documents_unfinished ON documents (leased_until) WHERE state = 0;
CREATE INDEX documents_ended ON documents (id) WHERE state = 2;
CREATE INDEX documents_by_expiry ON documents (expires_at) WHERE state = 1 AND expires_at > 0;

-- What each user has stored, for the quotas. A user has some rows, so that processes do not wait for one:
-- tally in usage.go.
CREATE TABLE document_shares (
	user_id  TEXT   NOT NULL,
	shard    BIGINT NOT NULL,
	objects  BIGINT NOT NULL,
	bytes    BIGINT NOT NULL,
	PRIMARY KEY (user_id, shard)
);


-- Signatures in two steps

-- Prepared objects: the state between the two steps of a signature. document and original are names of
-- stored objects. The name of a small object has its content. A row is spent once. It stays without its job and
-- its names until it expires, so that a second use is not taken for an unknown name.
CREATE TABLE prepared (
	id            TEXT      NOT NULL PRIMARY KEY,
	caller        TEXT      NOT NULL,
	type          TEXT      NOT NULL,
	document      TEXT      NOT NULL,
	original      TEXT      NOT NULL,
	bytes         BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	failures      BIGINT    NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	spent_at      BIGINT    NOT NULL,
	job           {{bytes}} NOT NULL
);
CREATE INDEX prepared_by_expiry ON prepared (expires_at);

-- What each caller has prepared and not spent, as document_shares.
CREATE TABLE prepared_shares (
	caller   TEXT   NOT NULL,
	shard    BIGINT NOT NULL,
	objects  BIGINT NOT NULL,
	bytes    BIGINT NOT NULL,
	PRIMARY KEY (caller, shard)
);


-- Answers to requests with an Idempotency-Key

-- name is a digest of the key, request one of the request. done_at is 0 while the first request runs. body
-- is sealed. blob is the name of a stored object with a larger body, and bytes its size.
CREATE TABLE answers (
	caller        TEXT      NOT NULL,
	name          TEXT      NOT NULL,
	request       {{bytes}} NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	done_at       BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	blob          TEXT      NOT NULL,
	bytes         BIGINT    NOT NULL,
	head          {{bytes}} NOT NULL,
	body          {{bytes}} NOT NULL,
	PRIMARY KEY (caller, name)
);
CREATE INDEX answers_by_expiry ON answers (expires_at);
CREATE INDEX answers_large ON answers (caller, bytes) WHERE blob <> '';


-- Messages

-- The outbox: messages, events for webhooks and callbacks, in the order of id. A message waits for the
-- earlier ones of its lane, which names the recipient. sealed is the text, and empty once it is not needed.
-- A row stays when its user is deleted: the message is still delivered, and administrators can look it up.
CREATE TABLE outbox (
	id            {{identity}},
	message_id    TEXT      NOT NULL UNIQUE,
	channel       TEXT      NOT NULL,
	lane          TEXT COLLATE {{binary}} NOT NULL,
	recipient     TEXT      NOT NULL,
	subject       TEXT      NOT NULL,
	user_id       TEXT      NOT NULL,
	actor         TEXT      NOT NULL,
	state         TEXT      NOT NULL,
	attempts      BIGINT    NOT NULL,
	error         TEXT      NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	due_at        BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	done_at       BIGINT    NOT NULL,
	sealed        {{bytes}} NOT NULL
);
CREATE INDEX outbox_lane ON outbox (lane, id) WHERE state = 'pending';
CREATE INDEX outbox_due ON outbox (channel, id) WHERE state = 'pending';
CREATE INDEX outbox_by_user ON outbox (user_id, id);
CREATE INDEX outbox_by_state ON outbox (state, id);
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at <> 0;
-- The deliveries to one webhook, the newest first.
CREATE INDEX outbox_webhooks ON outbox (lane, id) WHERE channel = 'Webhook';

-- How many messages were sent for a recipient, a caller or a range of numbers since window_from.
CREATE TABLE message_budgets (
	name         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	messages     BIGINT NOT NULL,
	window_from  BIGINT NOT NULL
);
CREATE INDEX message_budgets_by_window ON message_budgets (window_from);

-- Messages that are shown instead of sent, by a server for trying things out.
CREATE TABLE captured_messages (
	id          {{identity}},
	message_id  TEXT      NOT NULL UNIQUE,
	at          BIGINT    NOT NULL,
	channel     TEXT      NOT NULL,
	recipient   TEXT      NOT NULL,
	sealed      {{bytes}} NOT NULL
);

-- Systems that receive events. events is JSON, a list of types, [] for all. sealed is the secret that their
-- messages are signed with. paused_at is when the webhook was switched off, 0 while it is on.
CREATE TABLE webhooks (
	id          TEXT      NOT NULL PRIMARY KEY,
	url         TEXT      NOT NULL,
	events      TEXT      NOT NULL,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL,
	paused_at   BIGINT    NOT NULL
);


-- Policies

-- Access policies of users: the actions that a user may not perform, as bits.
CREATE TABLE access_policies (
	user_id  TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	denied   BIGINT NOT NULL
);

-- The other policies of users. actions are bits. notifiers is JSON, a list of notifiers by type of event.
CREATE TABLE user_policies (
	user_id    TEXT   NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	kind       TEXT   NOT NULL,
	actions    BIGINT NOT NULL,
	notifiers  TEXT   NOT NULL,
	PRIMARY KEY (user_id, kind)
) {{clustered}};

-- Policies of the users of a group that have none of their own. fixed forbids operators to give a user one.
CREATE TABLE group_policies (
	group_name  TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name) ON DELETE CASCADE,
	kind        TEXT    NOT NULL,
	actions     BIGINT  NOT NULL,
	notifiers   TEXT    NOT NULL,
	fixed       BOOLEAN NOT NULL,
	PRIMARY KEY (group_name, kind)
) {{clustered}};

-- Time-stamping services that were registered besides those of the configuration. Addresses with the same
-- normal_url are equal.
CREATE TABLE tsp_services (
	id          {{identity}},
	name        TEXT   NOT NULL UNIQUE,
	title       TEXT   NOT NULL,
	url         TEXT   NOT NULL,
	normal_url  TEXT   NOT NULL UNIQUE,
	class       TEXT   NOT NULL,
	policy      TEXT   NOT NULL,
	per_minute  BIGINT NOT NULL
);

-- Requests of operators that wait for a second operator (approval), for a time (not_before), or for both.
-- Equal requests have the same digest. delayed_from is when the delay began, and confirmed_at when its user
-- ended it; 0 for not. ended_at is 0 while the request is open. leased_until is for a request that is being
-- carried out.
CREATE TABLE approval_requests (
	id            TEXT      NOT NULL PRIMARY KEY,
	operation     TEXT      NOT NULL,
	object        TEXT      NOT NULL,
	requester     TEXT      NOT NULL,
	login         TEXT      NOT NULL,
	group_names   TEXT      NOT NULL,
	state         TEXT      NOT NULL,
	approval      BOOLEAN   NOT NULL,
	decided_by    TEXT      NOT NULL,
	created_at    BIGINT    NOT NULL,
	delayed_from  BIGINT    NOT NULL,
	not_before    BIGINT    NOT NULL,
	confirmed_at  BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	ended_at      BIGINT    NOT NULL,
	leased_until  BIGINT    NOT NULL,
	digest        {{bytes}} NOT NULL,
	sealed        {{bytes}} NOT NULL
);
CREATE UNIQUE INDEX approval_requests_open ON approval_requests (requester, digest) WHERE ended_at = 0;
CREATE INDEX approval_requests_object ON approval_requests (object, created_at) WHERE ended_at = 0;
-- Lists begin with the oldest and have pages.
CREATE INDEX approval_requests_in_order ON approval_requests (created_at, id) WHERE ended_at = 0;
CREATE INDEX approval_requests_due ON approval_requests (expires_at) WHERE ended_at = 0;
CREATE INDEX approval_requests_ended ON approval_requests (ended_at) WHERE ended_at <> 0;


-- The audit log

-- Entries stay when users are deleted, so they refer to no other table. correlation_id is the identifier
-- that a known caller gave the request, request_id the one that the service gave it. actor is the login of
-- an operator who acts for the user.
--
-- On PostgreSQL the log has a partition for each month, and one number over all of them. A partition has no
-- identity column, so the numbers come from a sequence.
{{postgres}}CREATE SEQUENCE audit_numbers;
CREATE TABLE audit (
{{sqlite}}	id              {{identity}},
{{postgres}}	id              BIGINT  NOT NULL DEFAULT nextval('audit_numbers'),
	at              BIGINT  NOT NULL,
	request_id      TEXT    NOT NULL,
	correlation_id  TEXT    NOT NULL,
	operation       TEXT    NOT NULL,
	phase           TEXT    NOT NULL,
	outcome         TEXT    NOT NULL,
	object          TEXT    NOT NULL,
	remote          TEXT    NOT NULL,
	detail          TEXT    NOT NULL,
	user_id         TEXT    NOT NULL,
	login           TEXT    NOT NULL,
	group_name      TEXT    NOT NULL,
	operator        BOOLEAN NOT NULL,
	actor           TEXT    NOT NULL,
	token_id        TEXT    NOT NULL,
	client_id       TEXT    NOT NULL,
	method          TEXT    NOT NULL,
	duration_us     BIGINT  NOT NULL
{{sqlite}});
{{postgres}}) PARTITION BY RANGE (at);
{{postgres}}ALTER SEQUENCE audit_numbers OWNED BY audit.id;

-- Entries are found by their user: as the caller, and as the object of the operation.
{{sqlite}}CREATE INDEX audit_by_user ON audit (user_id);
{{postgres}}CREATE INDEX audit_by_user ON audit (user_id, id);
{{sqlite}}CREATE INDEX audit_by_object ON audit (object) WHERE length(object) = 36;
{{postgres}}CREATE INDEX audit_by_object ON audit (object, id) WHERE length(object) = 36;
{{sqlite}}CREATE INDEX audit_by_time ON audit (at);
{{postgres}}CREATE INDEX audit_by_at ON audit USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

-- The first partition ends with a month whose end is at least a week away. Processes make the later ones
-- (partitions.go). Entries of clocks that are months wrong go to audit_other.
{{postgres}}CREATE TABLE audit_first PARTITION OF audit FOR VALUES FROM (MINVALUE)
{{postgres}}	TO (CAST(EXTRACT(EPOCH FROM date_trunc('month', (now() + INTERVAL '7 days') AT TIME ZONE 'UTC') + INTERVAL '1 month') * 1000 AS BIGINT));
{{postgres}}CREATE TABLE audit_other PARTITION OF audit DEFAULT;
{{postgres}}ALTER TABLE audit_first ADD PRIMARY KEY (id);
{{postgres}}ALTER TABLE audit_other ADD PRIMARY KEY (id);
-- The entries of a user are read along an index, the newest first. PostgreSQL would read and sort all of
-- them if it took them for few, as it does with a user whom its statistics do not name: 20 ms for 20,000
-- entries. n_distinct makes it assume 200 users.
{{postgres}}ALTER TABLE audit_first ALTER COLUMN user_id SET (n_distinct = 200), ALTER COLUMN object SET (n_distinct = 200);
{{postgres}}ALTER TABLE audit_other ALTER COLUMN user_id SET (n_distinct = 200), ALTER COLUMN object SET (n_distinct = 200);


-- Locks

-- Rows to lock on PostgreSQL for values that must be unique among users and may not be stored yet. The hash
-- of a value selects its row. The rows never change. They are many, so that two values rarely share a row.
{{postgres}}CREATE TABLE lock_stripes (
{{postgres}}	stripe  BIGINT NOT NULL PRIMARY KEY
{{postgres}});
{{postgres}}INSERT INTO lock_stripes (stripe) SELECT generate_series(0, 16383);


-- Backups

-- Backups that run. Objects of documents are not removed while one of these leases is valid.
CREATE TABLE backup_holds (
	id        TEXT   NOT NULL PRIMARY KEY,
	until_at  BIGINT NOT NULL
);

-- Restores of this database from a backup. taken_at is the time of the snapshot. The service is closed while
-- released_at is 0.
CREATE TABLE restores (
	id           TEXT   NOT NULL PRIMARY KEY,
	taken_at     BIGINT NOT NULL,
	restored_at  BIGINT NOT NULL,
	released_at  BIGINT NOT NULL
);


-- Master keys

-- Master keys that this database was used with. canary is a known text sealed under the key, by which a
-- file with another key is noticed. sealed_at is when a process last had the key as its active one.
CREATE TABLE master_keys (
	id          TEXT      NOT NULL PRIMARY KEY,
	canary      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL,
	sealed_at   BIGINT    NOT NULL
);

-- Processes of the service and the master keys that each has. A process writes seen_at regularly.
CREATE TABLE processes (
	id       TEXT    NOT NULL PRIMARY KEY,
	host     TEXT    NOT NULL,
	version  TEXT    NOT NULL,
	active   TEXT    NOT NULL,
	ids      TEXT    NOT NULL,
	seen_at  BIGINT  NOT NULL
);
