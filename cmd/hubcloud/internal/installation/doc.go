// Package installation has what an installation is, and the files that it keeps in its data
// directory. Its id and its environment are in the broker, where every replica and every operator's
// command reads them. The files are:
//
//	LOCK                     locked while a service or a restore uses the directory
//	RESTORING                present from the begin of a restore to its end
//	format.json              format of the directory, and the version that wrote it last
//	replica-id               identifies the replica over restarts
//	endpoints.json           addresses of the running service; absent while none is ready
//	nats-credentials.json    the broker's address and passwords
//	postgres.json            the database's URL
//	service.json             how the service was last started, and why it ended
//	nats/  postgres/  ca/    stores of the embedded broker, the private database and the authority
//	acme/                    account and certificates of --acme-domain
//	outbox/                  mails, when there is no mail server
//	dev.json  virtualhubs/   organization, key and hubs of the demo
//
// Every file is replaced atomically and synced, so that a reader sees the former or the new
// content also after a crash.
//
// A Session is what an operator does to a running installation; Restore and FillDirectory are for
// one that is stopped. They print nothing; package cli does. A change through a Session is in force
// on every replica when its function returns: replicas learn of a change from the directory log, and
// the Session waits until all of them have applied it.
//
// Program identifies the program: its version, the commit it was built from and the definition of
// its read models. HTTPClient makes clients whose requests name the version.
package installation
