// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"tamga/internal/adapter/store"
	"tamga/internal/cli"
)

// databaseRemedies are what to do about a database that cannot be used.
var databaseRemedies = map[store.Trouble]cli.Sentence{
	store.NotListening:     cli.Say("start the database server, or correct the host and the port in database"),
	store.UnknownHost:      cli.Say("correct the name of the server in database, or the name service of this machine"),
	store.Silent:           cli.Say("let connections to the database server through the firewall, or correct the address in database"),
	store.WrongPassword:    cli.Say("put the password of the role into the file of database_password_file; ALTER ROLE sets it on the server"),
	store.NotAdmitted:      cli.Say("admit the role and the address of this machine in pg_hba.conf of the server; with peer authentication the user of the system has the name of the role"),
	store.NoSuchRole:       cli.Say("make the role on the server: createuser --pwprompt tamga; or correct the name in database"),
	store.NoSuchDatabase:   cli.Say("make the database on the server: createdb --template=template0 --encoding=UTF8 --lc-collate=C --lc-ctype=C.UTF-8 --owner=tamga tamga; or correct the name in database"),
	store.NotPermitted:     cli.Say("let the role own the database and its tables: ALTER DATABASE tamga OWNER TO tamga; REASSIGN OWNED gives it the tables of another role"),
	store.NotWholeOwner:    cli.Say("give the tables to the role of database: REASSIGN OWNED BY other TO tamga"),
	store.UnknownAuthority: cli.Say("name the authority of the server's certificate in the address of database: sslrootcert=FILE"),
	store.WrongCertificate: cli.Say("correct the certificate of the database server: its name and its end; or the name of the server in database"),
	store.NoTLS:            cli.Say("switch TLS on at the database server (ssl=on), or set sslmode in the address of database to what the server offers"),
	store.Full:             cli.Say("raise max_connections of the database server, or lower database_connections"),
	store.DamagedFile:      cli.Say("restore the last backup into a new file: tamga restore DIR; keep the damaged one"),
	store.ClosedFile:       cli.Say("give the file of the database and its directory to the user of the service: chown; or run the command as this user"),
	store.DiskFull:         cli.Say("make room on the disk of the database"),
}

// databaseRemedy returns what to do about an error of the database.
func databaseRemedy(err error) cli.Sentence {
	if remedy, known := databaseRemedies[store.TroubleOf(err)]; known {
		return remedy
	}
	return cli.Say("correct the cause that the message names; see the log of the database server")
}
