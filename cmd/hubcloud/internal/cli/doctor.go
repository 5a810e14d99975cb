package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/streams"
)

// doctorCommand checks every component of an installation.
type doctorCommand struct {
	operatorFlags
	outputFlags
	PostgresURL string   `help:"Database to check. Defaults to that of --data-dir." placeholder:"URL" name:"postgres-url"`
	SMTPURL     string   `help:"Mail server whose login to check, in the form of serve. No mail is sent." placeholder:"URL" name:"smtp-url"`
	CACert      string   `help:"Certificate (PEM) of the authority. Defaults to that of the service." placeholder:"FILE" name:"ca-cert" type:"path"`
	Certificate []string `help:"Further certificates (PEM) whose expiry to check, such as a proxy's." placeholder:"FILE" type:"path" sep:","`
	doctorLimits
}

// doctorLimits are the values beyond which a component is wrong or gets a warning.
type doctorLimits struct {
	DiskFree        float64       `help:"Part of each disk that must be free, in percent. Less than twice as much is a warning." default:"5" group:"Limits"`
	SyncTime        time.Duration `help:"Longest time to sync a small file to disk." default:"50ms" group:"Limits"`
	OpenFiles       uint64        `help:"Lowest limit of open files; more if the hubs need more." default:"4096" group:"Limits"`
	ClockSkew       time.Duration `help:"Largest difference between two clocks." default:"2s" group:"Limits"`
	CertificateDays int           `help:"Days for which a certificate must still be valid." default:"14" group:"Limits"`
	StorageUsed     float64       `help:"Largest used part of a storage limit of the broker, in percent. More than four fifths of it is a warning." default:"90" group:"Limits"`
	Connections     int           `help:"Connections that the database must have free." default:"10" group:"Limits"`
	Lag             time.Duration `help:"Largest age of an event that the read models have not applied." default:"30s" group:"Limits"`
	MailAge         time.Duration `help:"Longest time that a mail waits for the mail server." default:"15m" group:"Limits"`
	Flaps           int           `help:"Disconnections of a hub per hour that are a warning." default:"6" group:"Limits"`
	HubFacts        int           `help:"Resets of a hub, or certificates issued to it, per hour that are a warning." default:"20" group:"Limits"`
}

// Help returns the long help text.
func (c *doctorCommand) Help() string {
	return `Checks every component (service, broker, disk, sync setting, open files, clock, certificates, PostgreSQL, projections, mail, hubs that
reconnect often, logs near their limits, the journals that hub logs are written from), and prints its state and what to do. It takes less than five seconds, also works while no service
runs, and changes nothing, except that it creates and removes a file of a few bytes to test the disk.

  hubcloud doctor --data-dir /var/lib/hubcloud
  hubcloud doctor --nats-url nats://broker:4222 --nats-credentials credentials.json --postgres-url postgres://…

The verdicts are ok, skipped (cannot be checked from here), warning, unknown (no answer) and wrong. The exit code is 1 when a component is
wrong or unknown, and 0 otherwise. With --json it prints one object per line: name, ok, verdict, detail, advice.`
}

// Validate checks the flags. The flag parser calls it.
func (c *doctorCommand) Validate() error {
	for _, f := range []struct {
		name    string
		percent float64
	}{
		{"disk-free", c.DiskFree}, {"storage-used", c.StorageUsed},
	} {
		if f.percent < 0 || f.percent > 100 {
			return fmt.Errorf("--%s %g: must be 0 to 100", f.name, f.percent)
		}
	}
	if c.Flaps < 1 {
		return fmt.Errorf("--flaps %d: must be at least 1", c.Flaps)
	}
	if c.HubFacts < 1 {
		return fmt.Errorf("--hub-facts %d: must be at least 1", c.HubFacts)
	}
	return nil
}

// errUnhealthy reports that the doctor found and printed a problem.
var errUnhealthy = errors.New("a component is wrong or unknown")

// Run checks the components and prints them.
func (c *doctorCommand) Run(ctx context.Context, out Output) error {
	all := doctor.Check(ctx, c.config())
	if c.JSON {
		for _, component := range all {
			if err := printJSON(out.Out, component); err != nil {
				return err
			}
		}
	} else if err := printDiagnosis(out.Out, all); err != nil {
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
		Elsewhere: c.NATSURL != "", SMTPURL: c.SMTPURL,
		CACert: c.CACert, Certificates: c.Certificate,
		Limits: doctor.Limits{
			DiskFree: c.DiskFree, SyncTime: c.SyncTime, OpenFiles: c.OpenFiles,
			ClockSkew: c.ClockSkew, CertificateDays: c.CertificateDays,
			Storage: c.StorageUsed, Connections: c.Connections, Lag: c.Lag, MailAge: c.MailAge,
			Flaps: c.Flaps, HubFacts: c.HubFacts,
		},
	}
	dir := datadir.Dir(c.DataDir)
	if _, err := os.Stat(c.DataDir); err == nil || !cfg.Elsewhere {
		cfg.DataDir = c.DataDir
	}
	if bound, err := dir.Endpoints(); err == nil {
		cfg.Bound = doctor.Bound{
			HTTP:      bound.HTTP,
			Admin:     bound.Admin,
			MQTT:      bound.MQTT,
			PublicURL: bound.PublicURL,
			TLS:       bound.TLS,
		}
	}
	started, err := dir.Started()
	if cfg.Started = started; !errors.Is(err, fs.ErrNotExist) {
		cfg.StartedErr = err
	}
	cfg.PostgresURL, err = c.databaseURL(c.PostgresURL)
	// A usage error means that the file does not exist; the doctor reports other errors.
	if _, none := errors.AsType[usage.Error](err); !none {
		cfg.PostgresErr = err
	}
	cfg.Credentials, cfg.CredentialsErr = c.service().Credentials()
	cfg.Projections = func(
		ctx context.Context, conns *streams.Conns,
	) ([]projections.Status, error) {
		return projectionStatus(ctx, conns, cfg.PostgresURL)
	}
	return cfg
}

// projectionStatus returns the status of the projections, like the command `projections status`.
func projectionStatus(
	ctx context.Context, conns *streams.Conns, postgresURL string,
) ([]projections.Status, error) {
	s, err := operator.NewSession(ctx, conns)
	if err != nil {
		return nil, err
	}
	models, err := s.ReadModels(ctx, postgresURL)
	if err != nil {
		return nil, err
	}
	return models.Status(ctx)
}

// printDiagnosis prints the components in aligned columns, with one line for each advice.
func printDiagnosis(w io.Writer, all []doctor.Component) error {
	verdicts, names := 0, 0
	for _, c := range all {
		verdicts, names = max(verdicts, len(c.Verdict)), max(names, len(c.Name))
	}
	indent := strings.Repeat(" ", verdicts+names+4)
	for _, c := range all {
		_, err := fmt.Fprintf(
			w, "%-*s  %-*s  %s\n", verdicts, c.Verdict, names, c.Name, domain.PlainLine(c.Detail),
		)
		if err != nil {
			return err
		}
		for _, advice := range c.Advice {
			if _, err := fmt.Fprintf(w, "%s→ %s\n", indent, domain.PlainLine(advice)); err != nil {
				return err
			}
		}
	}
	return nil
}
