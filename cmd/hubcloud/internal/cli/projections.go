package cli

import (
	"context"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/projections/rebuild"
)

// projectionsCommand groups the commands on the read models, the tables from which the API answers
// reads.
type projectionsCommand struct {
	Status  projectionsStatusCommand  `cmd:"" help:"Show how far each projection is, and why it is stopped."`
	Rebuild projectionsRebuildCommand `cmd:"" help:"Build the read models again beside those in use, and switch to them."`
	Verify  projectionsVerifyCommand  `cmd:"" help:"Build the read models again and compare those in use with them."`
	Drop    projectionsDropCommand    `cmd:"" help:"Drop unused read models: replaced by a rebuild, or of other versions."`
	Stop    projectionsStopCommand    `cmd:"" help:"Stop projections until they are resumed. Reads then show the state of that moment."`
	Resume  projectionsResumeCommand  `cmd:"" help:"Resume stopped projections."`
	Skip    projectionsSkipCommand    `cmd:"" help:"Skip the event that stops a projection."`
}

// readModelFlags name the service and the database whose read models a command works on.
type readModelFlags struct {
	operatorFlags
	PostgresURL string `help:"Database of the service, instead of that in postgres.json in --data-dir." name:"postgres-url" placeholder:"URL"`
	outputFlags
}

// readModels are the open read models with the session that they use.
type readModels struct {
	*rebuild.Control
	session *installation.Session
}

// open connects to the broker and the database. The caller closes the session.
func (f readModelFlags) open(ctx context.Context) (*readModels, error) {
	url, err := f.databaseURL(f.PostgresURL)
	if err != nil {
		return nil, err
	}
	s, err := installation.Connect(ctx, f.service())
	if err != nil {
		return nil, err
	}
	models, err := s.ReadModels(ctx, url)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &readModels{Control: models, session: s}, nil
}

// withReadModels runs a short command with the read models.
func (f readModelFlags) withReadModels(
	ctx context.Context, command func(ctx context.Context, models *readModels) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	models, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	return command(ctx, models)
}
