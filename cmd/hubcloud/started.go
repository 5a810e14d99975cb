package main

import (
	"os"
	"time"

	"hubcloud/cmd/hubcloud/doctor"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/durablefile"
)

// startedFile says how the service on a data directory was started. It outlives the service, and anybody may read it.
const startedFile = "service.json"

// writeStarted writes down what the doctor wants to know of a service, and nothing that is secret.
func (d dataDir) writeStarted(f *serviceFlags) error {
	started := doctor.Started{
		PID: os.Getpid(), At: time.Now().UTC(), Roles: f.Roles, Environment: f.Environment,
		OwnBroker: f.NATSURL != "", OwnDatabase: f.PostgresURL != "", Sync: f.Sync, LogReplicas: f.LogReplicas,
		CACert: f.CACert, PublicMQTT: f.PublicMQTT,
	}
	if f.SMTPURL != "" {
		server, err := mail.ParseServer(f.SMTPURL)
		if err != nil {
			return err
		}
		started.MailServer = server.WithoutLogin()
	}
	text, err := started.Encode()
	if err != nil {
		return err
	}
	return durablefile.Write(d.path(startedFile), text, 0o644)
}
