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
	"hubcloud/projections"
	"hubcloud/streams"
)

// doctorCommand looks at every component of an installation.
type doctorCommand struct {
	operatorFlags
	outputFlags
	PostgresURL string   `help:"Database to look at; that of --data-dir when not given." placeholder:"URL" name:"postgres-url"`
	SMTPURL     string   `help:"Mail server, to try its login, too: as serve takes it. Nothing is sent." placeholder:"URL" name:"smtp-url"`
	CACert      string   `help:"Certificate (PEM) of the authority; the service's when not given." placeholder:"FILE" name:"ca-cert" type:"path"`
	Certificate []string `help:"Further certificates (PEM) whose end is looked at, such as a proxy's." placeholder:"FILE" type:"path" sep:","`
	doctorLimits
}

// doctorLimits are from where on something is wrong.
type doctorLimits struct {
	DiskFree        float64       `help:"Part of each disk that must be free, in percent; below twice as much is a warning." default:"5" group:"Limits"`
	SyncTime        time.Duration `help:"Longest sync of a small file to disk." default:"50ms" group:"Limits"`
	OpenFiles       uint64        `help:"Open files that the service must be allowed, if its hubs do not need more." default:"4096" group:"Limits"`
	ClockSkew       time.Duration `help:"How far two clocks may be apart." default:"2s" group:"Limits"`
	CertificateDays int           `help:"Days that a certificate must still last." default:"14" group:"Limits"`
	StorageUsed     float64       `help:"Part of a limit of the broker's that may be used up, in percent; above four fifths of it is a warning." default:"90" group:"Limits"`
	Connections     int           `help:"Connections that the database must have left." default:"10" group:"Limits"`
	Lag             time.Duration `help:"Age of an event that the read models may not have yet." default:"30s" group:"Limits"`
	MailAge         time.Duration `help:"How long a mail may wait for the mail server." default:"15m" group:"Limits"`
	Flaps           int           `help:"Disconnections of a hub within an hour that are a warning." default:"6" group:"Limits"`
	HubFacts        int           `help:"Resets of a hub, or certificates issued to it, within an hour that are a warning." default:"20" group:"Limits"`
}

// Help is what --help says beside the flags.
func (c *doctorCommand) Help() string {
	return `Looks at every component (the service, broker, disk, sync setting, open files, clock, certificates, PostgreSQL, projections, mail, hubs that
come and go, logs near their limits), and says of each how it is and what to do. It takes less than five seconds, changes nothing (but
for a file of a few bytes, to try the disk, which it removes again), and also says what it can while no service runs.

  hubcloud doctor --data-dir /var/lib/hubcloud
  hubcloud doctor --nats-url nats://broker:4222 --nats-credentials credentials.json --postgres-url postgres://…

The verdicts are ok, skipped (nothing to look at from here), warning, unknown (something did not answer) and wrong. The exit code is 1 when
something is wrong or unknown, and 0 otherwise. With --json there is one object a line: name, ok, verdict, detail, advice.`
}

// Validate checks what the flags say; kong calls it once they are parsed.
func (c *doctorCommand) Validate() error {
	for name, part := range map[string]float64{
		"disk-free": c.DiskFree, "storage-used": c.StorageUsed,
	} {
		if part < 0 || part > 100 {
			return fmt.Errorf("--%s %g: 0 to 100 percent", name, part)
		}
	}
	if c.Flaps < 1 {
		return fmt.Errorf("--flaps %d: at least 1", c.Flaps)
	}
	if c.HubFacts < 1 {
		return fmt.Errorf("--hub-facts %d: at least 1", c.HubFacts)
	}
	return nil
}

// errUnwell says that something is wrong, which has been outputFlags by then.
var errUnwell = errors.New("something is wrong")

// Run looks, and prints what it found.
func (c *doctorCommand) Run(ctx context.Context, out Streams) error {
	all := doctor.Examine(ctx, c.config())
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
		return errUnwell
	}
	return nil
}

// config gathers what is known of the installation. What cannot be read is told by the component
// that it is about.
func (c *doctorCommand) config() doctor.Config {
	cfg := doctor.Config{
		Elsewhere: c.NATSURL != "", PostgresURL: c.PostgresURL, SMTPURL: c.SMTPURL,
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
		}
	}
	var err error
	if cfg.Started, err = dir.Started(); !errors.Is(
		err, fs.ErrNotExist,
	) {
		cfg.StartedErr = err
	}
	if cfg.PostgresURL == "" {
		db, err := dir.Database()
		// the file is there, and cannot be read
		if _, none := errors.AsType[usage.Error](err); !none {
			cfg.PostgresErr = err
		}
		cfg.PostgresURL = db.URL
	}
	cfg.Credentials, cfg.CredentialsErr = c.service().Credentials()
	cfg.Projections = func(ctx context.Context, conns *streams.Conns) ([]projections.ProjectionStatus, error) {
		return projectionStatus(ctx, conns, cfg.PostgresURL)
	}
	return cfg
}

// projectionStatus is what `projections status` says.
func projectionStatus(
	ctx context.Context, conns *streams.Conns, postgresURL string,
) ([]projections.ProjectionStatus, error) {
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

// printDiagnosis writes the components for people: aligned, with a line for each thing to do.
func printDiagnosis(w io.Writer, all []doctor.Component) error {
	verdicts, names := 0, 0
	for _, c := range all {
		verdicts, names = max(verdicts, len(c.Verdict)), max(names, len(c.Name))
	}
	indent := strings.Repeat(" ", verdicts+names+4)
	for _, c := range all {
		if _, err := fmt.Fprintf(w, "%-*s  %-*s  %s\n", verdicts, c.Verdict, names, c.Name, printable(c.Detail)); err != nil {
			return err
		}
		for _, advice := range c.Advice {
			if _, err := fmt.Fprintf(w, "%s→ %s\n", indent, printable(advice)); err != nil {
				return err
			}
		}
	}
	return nil
}
