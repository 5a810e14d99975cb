package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

// doctorCommand checks every component of an installation.
type doctorCommand struct {
	operatorCommand
	PostgresURL string   `help:"Database to check. Defaults to the one in --data-dir." placeholder:"URL" name:"postgres-url"`
	SMTPURL     string   `help:"Mail server whose login to check, in the form of serve. No mail is sent." placeholder:"URL" name:"smtp-url"`
	CACert      string   `help:"Certificate (PEM) of the authority. Defaults to the service's." placeholder:"FILE" name:"ca-cert" type:"path"`
	Certificate []string `help:"Further certificates (PEM) whose expiry to check, such as a proxy's." placeholder:"FILE" type:"path" sep:","`
	Admin       string   `help:"--admin address of a service elsewhere, to be asked what only a running service knows. Defaults to the service's on --data-dir." placeholder:"HOST:PORT" env:"-"`
	doctor.Limits
}

// Validate checks the flags. The flag parser calls it.
func (c *doctorCommand) Validate() error {
	if c.Admin != "" && installation.CheckAddress(c.Admin) != nil {
		return fmt.Errorf("--admin %q: must be HOST:PORT", c.Admin)
	}
	return c.Limits.Validate()
}

// errUnhealthy reports that the doctor found and printed a problem.
var errUnhealthy = errors.New("a component is wrong or unknown")

// Run checks the components and prints them.
func (c *doctorCommand) Run(ctx context.Context, out Output) error {
	all := doctor.Check(ctx, c.config())
	var err error
	if c.JSON {
		err = list(out.Out, c.outputFlags, each(all), nil, nil)
	} else {
		err = printDiagnosis(out.Out, all)
	}
	if err != nil {
		return err
	}
	if !doctor.Healthy(all) {
		return errUnhealthy
	}
	return nil
}

// config returns what the flags and the data directory say about the installation. The component
// concerned reports what cannot be read.
func (c *doctorCommand) config() doctor.Config {
	cfg := doctor.Config{
		Elsewhere: c.NATSURL != "" || c.Admin != "", SMTPURL: c.SMTPURL,
		CACert: c.CACert, Certificates: c.Certificate,
		Limits: c.Limits,
	}
	dir := installation.Dir(c.DataDir)
	if _, err := os.Stat(c.DataDir); err == nil || !cfg.Elsewhere {
		cfg.DataDir = c.DataDir
	}
	// Without the file no service runs, or it starts; the doctor finds out which.
	cfg.Bound, _ = dir.Endpoints()
	if c.Admin != "" {
		cfg.Bound.Admin = c.Admin
	}
	started, err := dir.Started()
	if cfg.Started = started; !errors.Is(err, fs.ErrNotExist) {
		cfg.StartedErr = err
	}
	cfg.PostgresURL, err = c.databaseURL(c.PostgresURL)
	// A usage error means that the file does not exist; the doctor reports other errors.
	if _, none := errors.AsType[installation.UsageError](err); !none {
		cfg.PostgresErr = err
	}
	cfg.Credentials, cfg.CredentialsErr = c.service().Credentials()
	return cfg
}

// printDiagnosis prints the components in aligned columns, with one line for each advice.
func printDiagnosis(w io.Writer, all []doctor.Component) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Verdict, c.Name, domain.PlainLine(c.Detail))
		for _, advice := range c.Advice {
			fmt.Fprintf(table, "\t\t→ %s\n", domain.PlainLine(advice))
		}
	}
	return table.Flush()
}
