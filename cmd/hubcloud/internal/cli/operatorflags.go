package cli

import (
	"context"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// operatorTimeout bounds a command that an operator expects to be short.
const operatorTimeout = 30 * time.Second

// operatorFlags name the running service that a command works on.
type operatorFlags struct {
	DataDir         string `help:"Data directory of the running service." default:"./data" type:"path"`
	NATSURL         string `help:"Broker to connect to, instead of the one in --data-dir." name:"nats-url" placeholder:"URL"`
	NATSCredentials string `help:"Credentials file for --nats-url. Defaults to nats-credentials.json in --data-dir." name:"nats-credentials" type:"path" placeholder:"FILE"`
}

// operatorCommand has the flags of a command that prints what it did or found.
type operatorCommand struct {
	operatorFlags
	outputFlags
}

func (f operatorFlags) service() installation.Service {
	return installation.Service{
		DataDir: f.DataDir, NATSURL: f.NATSURL, NATSCredentials: f.NATSCredentials,
	}
}

// databaseURL returns the URL that a flag has, or the one in the data directory if the flag is
// empty.
func (f operatorFlags) databaseURL(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	database, err := f.service().Dir().Database()
	return database.URL, err
}

// withSession runs a short command on a session.
func (f operatorFlags) withSession(
	ctx context.Context, command func(ctx context.Context, s *installation.Session) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	s, err := installation.Connect(ctx, f.service())
	if err != nil {
		return err
	}
	defer s.Close()
	return command(ctx, s)
}
