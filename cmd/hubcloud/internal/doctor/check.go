package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
)

const (
	// connectTimeout bounds the connection to a server.
	connectTimeout = 2 * time.Second
	// serviceTimeout ends the context of the service's checks.
	serviceTimeout = 3 * time.Second
	// checkTimeout ends the context of the doctor's checks, which include the service's answer.
	checkTimeout = 4 * time.Second
	// grace is how long checks are awaited that ignore the end of their context, such as a check of
	// a disk that hangs.
	grace = 500 * time.Millisecond
)

// Config has what is known about an installation. Zero fields are unknown. It has neither defaults,
// which the command line sets, nor a Validate: the check that a field concerns reports it.
type Config struct {
	// DataDir is the data directory of a service on this machine; "" for none.
	DataDir string
	// Elsewhere is set when the broker was named by its address. Then no service needs to run on
	// this machine.
	Elsewhere bool
	// Bound has the addresses of the running service; zero when none runs.
	Bound installation.Endpoints
	// Started describes how the service was started. It is nil when the file does not exist, or
	// when StartedErr is set.
	Started    *installation.Started
	StartedErr error
	// Credentials are the broker's, unless CredentialsErr is set.
	Credentials    streams.Credentials
	CredentialsErr error
	// PostgresURL is the database's URL. When it is "", PostgresErr may have the reason.
	PostgresURL string
	PostgresErr error
	// SMTPURL is the mail server's URL with its login. Defaults to Started.MailServer, without
	// a login.
	SMTPURL string
	// CACert is the path of the authority's certificate (PEM). Defaults to the one in Started or
	// in the data directory.
	CACert string
	// Certificates are paths of further certificates (PEM) whose expiry is checked.
	Certificates []string
	Limits       Limits
}

// Limits are the values beyond which a component is wrong or gets a warning. They are flags of the
// command, which has the defaults.
type Limits struct {
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

// Validate checks the limits. The flag parser calls it.
func (l Limits) Validate() error {
	switch {
	case l.DiskFree < 0 || l.DiskFree > 100:
		return fmt.Errorf("--disk-free %g: must be 0 to 100", l.DiskFree)
	case l.StorageUsed < 0 || l.StorageUsed > 100:
		return fmt.Errorf("--storage-used %g: must be 0 to 100", l.StorageUsed)
	case l.Flaps < 1:
		return fmt.Errorf("--flaps %d: must be at least 1", l.Flaps)
	case l.HubFacts < 1:
		return fmt.Errorf("--hub-facts %d: must be at least 1", l.HubFacts)
	}
	return nil
}

// check is the check of one component. Its functions add what they find to f, and must return when
// ctx ends.
type check struct {
	name string
	// here checks what makes sense without a service.
	here func(ctx context.Context, t *target, f *findings)
	// there runs in the service.
	there func(ctx context.Context, s *visit, f *findings)
	// alone follows here when there is no answer of the service, for the reason err. It is nil if
	// what the service would say can be left out: the component service reports the reason.
	alone func(ctx context.Context, t *target, err error, f *findings)
}

// checks are all checks, in the order of the results. A new check is also named in the help of the
// command (cli/doctor.go), in deploy/docs/doctor.md and in test/operators/diagnosis_test.go.
var checks = [...]check{
	{"service", checkService, checkReadiness, nil},
	{"broker", nil, checkBroker, checkBrokerAlone},
	{"disk", checkDisk, checkReserve, nil},
	{"sync", checkDiskSync, checkSync, notAsked},
	{"open_files", nil, checkOpenFiles, notAsked},
	{"clock", checkClock, checkServerClocks, nil},
	{"certificates", checkCertificates, checkHubCertificates, nil},
	{"postgres", checkPostgres, nil, nil},
	{"projections", nil, checkProjections, notAsked},
	{"mail", checkMail, checkQueue, nil},
	{"sign_in", nil, checkSignIn, notAsked},
	{"webhooks", nil, checkWebhooks, notAsked},
	{"hubs", nil, checkHubs, notAsked},
	{"shares", nil, checkShares, notAsked},
	{"logs", nil, checkLogs, checkStores},
	{"journal", nil, checkJournal, notAsked},
}

// run runs the check from the doctor's side.
func (c check) run(ctx context.Context, t *target, f *findings) {
	if c.here != nil {
		c.here(ctx, t, f)
	}
	if c.there == nil {
		return
	}
	answer, err := t.answer()
	found := answer[c.name]
	if err == nil && found == nil {
		err = errors.New("the service does not report it: it is of another version")
	}
	switch {
	case err == nil:
		f.merge(found)
	case c.alone != nil:
		c.alone(ctx, t, err, f)
	}
}

// notAsked reports a component of which only the service knows.
func notAsked(_ context.Context, t *target, err error, f *findings) {
	if t.DataDir == "" && t.Bound.Admin == "" {
		f.skip("only a running service knows, and none is known here").todo(
			"name the service's --admin address with --admin",
		)
		return
	}
	f.unclear("only the running service knows: %v", err).todo("see the component service")
}

// Check checks every component, in less than five seconds.
func Check(ctx context.Context, cfg Config) []Component {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	t := newTarget(ctx, cfg)
	defer t.close()
	defer cancel()
	found := runAll(checkTimeout+grace, len(checks), func(i int, f *findings) {
		checks[i].run(ctx, t, f)
	})
	all := make([]Component, len(checks))
	for i, c := range checks {
		all[i] = found[i].component(c.name)
	}
	return all
}

// runAll calls run n times concurrently, and returns what each call has found. A call that does not
// return in time has found nothing but that.
func runAll(limit time.Duration, n int, run func(i int, f *findings)) []*findings {
	results := make([]chan *findings, n)
	for i := range n {
		results[i] = make(chan *findings, 1) // buffered: the receiver may have given up
		go func() {
			f := newFindings()
			run(i, f)
			results[i] <- f
		}()
	}
	late, expired := time.After(limit), make(chan struct{})
	all := make([]*findings, n)
	for i := range n {
		select {
		case all[i] = <-results[i]:
			continue
		case <-late:
			close(expired)
		case <-expired:
		}
		select {
		case all[i] = <-results[i]:
		default:
			all[i] = newFindings()
			all[i].unclear("no answer within %s", limit).todo(
				"check whether a disk or a mount of this machine hangs (dmesg, `df`), and try " +
					"again",
			)
		}
	}
	return all
}

// Healthy reports whether no component is wrong or unknown.
func Healthy(all []Component) bool {
	for _, c := range all {
		if !c.OK {
			return false
		}
	}
	return true
}
