package check

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
)

// Config configures a Check. Every field has a default.
type Config struct {
	// Host is the name or address under which the hub reaches this machine. The certificate of the
	// endpoint is valid for it. The endpoint listens on this address alone if it is a loopback
	// address or localhost, and otherwise on all. Defaults to 127.0.0.1.
	Host string
	// HTTPPort and MQTTPort are the ports of the enrolment and of MQTT. 0 is any free port.
	HTTPPort, MQTTPort int
	// Certificate is for the enrolment, for hubs that enrol over HTTPS only. Without one, the
	// enrolment is over HTTP. Hubs must trust its authority.
	Certificate *tls.Certificate
	// Serial and Secret are the hub's. Each is generated if it is empty.
	Serial, Secret string
	// State is a folder that keeps the authority, Serial, Secret and the ports from check to check,
	// so that a hub can be checked again without a reset. Set fields win over what it holds. Empty
	// keeps nothing: each check has an authority of its own.
	State string
	// Only are the IDs of the lines to check. Defaults to all.
	Only []string
	// Device is the device that gets the commands. Defaults to the first with a writable channel,
	// and rather one with a switch or a light than one with a lock.
	Device *int64
	// Commands is how many commands fill the hub's queue of events. Each causes one event or more,
	// so 2,001 or more fill the window of 2,000. 0 omits the step. 50 are few enough for a
	// real radio, which takes a second or so for each.
	Commands int
	// Timeout limits the whole check, from the start of Run. Defaults to ten minutes and the
	// time that Commands may take.
	Timeout time.Duration
	// ReadyWait is how long a hub is asked again that answers hub_unavailable, and one without a
	// channel for commands. Defaults to 2 min.
	ReadyWait time.Duration

	// OnLine is called when the state of a line changes, OnStep when a step of the script begins,
	// with what is going on, and OnNote with what the person at the hub must know meanwhile. None
	// may block or call the Check. Default to none.
	OnLine func(Result)
	OnStep func(text string)
	OnNote func(text string)
	// Logger receives the records of the certificates. Defaults to none.
	Logger *slog.Logger
}

const (
	// fillWindow is a little more than the window of 2,000 events.
	fillWindow = 2100
	// defaultTimeout is several times what a check of a right hub takes.
	defaultTimeout = 10 * time.Minute
	// commandLimit is how long a command may take in the step that fills the queue.
	commandLimit = time.Second
	// defaultReadyWait is longer than a radio takes to start.
	defaultReadyWait = 2 * time.Minute
)

// WithDefaults returns a copy with defaults in place of zero values.
func (cfg Config) WithDefaults() Config {
	cfg.Host = cmp.Or(cfg.Host, "127.0.0.1")
	if cfg.Serial == "" {
		var entropy [12]byte
		_, _ = rand.Read(entropy[:]) // never fails
		hub, _ := domain.NewHubID("hub", entropy)
		cfg.Serial = hub.Serial()
	}
	if cfg.Secret == "" {
		var entropy [32]byte
		_, _ = rand.Read(entropy[:]) // never fails
		cfg.Secret = domain.NewEnrolmentSecret(entropy)
	}
	cfg.Timeout = cmp.Or(
		cfg.Timeout, defaultTimeout+time.Duration(max(0, cfg.Commands))*commandLimit,
	)
	cfg.ReadyWait = cmp.Or(cfg.ReadyWait, defaultReadyWait)
	if cfg.OnLine == nil {
		cfg.OnLine = func(Result) {}
	}
	if cfg.OnStep == nil {
		cfg.OnStep = func(string) {}
	}
	if cfg.OnNote == nil {
		cfg.OnNote = func(string) {}
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return cfg
}

// maxCommands bounds Config.Commands.
const maxCommands = 100_000

const maxPort = 65535

// ConfigError is the error of an invalid field of a Config, or of a port that cannot be opened.
type ConfigError struct {
	// Field is the field's name in lower case, such as "http port".
	Field string
	// Problem states what is wrong and what is allowed.
	Problem string
}

// Error returns the field and the problem.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Problem }

// Validate returns a *ConfigError for the first invalid field.
func (cfg Config) Validate() error {
	invalid := func(field, format string, args ...any) error {
		return &ConfigError{field, fmt.Sprintf(format, args...)}
	}
	if strings.ContainsAny(cfg.Host, "/: ") && net.ParseIP(cfg.Host) == nil {
		return invalid("listen", "%q must be a name or an address, without a port", cfg.Host)
	}
	if ip := net.ParseIP(cfg.Host); ip != nil && ip.IsUnspecified() {
		return invalid("listen", "%q must be an address that the hub can connect to", cfg.Host)
	}
	if _, ok := domain.ParseSerial(cfg.Serial); !ok {
		return invalid("serial", "%q must be a serial, such as HUB-7K2M-Q4XD-93TA", cfg.Serial)
	}
	if !domain.ValidEnrolmentSecret(cfg.Secret) {
		return invalid("secret", "must be 32 bytes in base64url without padding, 43 characters")
	}
	if cfg.Commands < 0 || cfg.Commands > maxCommands {
		return invalid("commands", "is %d, must be 0 to %d", cfg.Commands, maxCommands)
	}
	if cfg.HTTPPort < 0 || cfg.HTTPPort > maxPort {
		return invalid("http port", "is %d, must be 0 to %d", cfg.HTTPPort, maxPort)
	}
	if cfg.MQTTPort < 0 || cfg.MQTTPort > maxPort {
		return invalid("mqtt port", "is %d, must be 0 to %d", cfg.MQTTPort, maxPort)
	}
	if cfg.Timeout < time.Second {
		return invalid("timeout", "is %v, must be at least 1s", cfg.Timeout)
	}
	if _, err := linesNamed(cfg.Only); err != nil {
		return invalid("only", "%v", err)
	}
	return nil
}

// Check checks one hub. Make it with New, run it once with Run.
type Check struct {
	cfg   Config
	hub   domain.HubID
	lines []Line

	dir       string // of what is not kept, removed by Run
	authority *identity.Authority
	// stranger is an authority that no hub trusts.
	stranger   *identity.Authority
	enrolment  *identity.Enrolment
	inventory  inventory
	http, mqtt net.Listener

	// mu guards what follows. The script holds it at all times except while it waits (await); what
	// the hub sends is handled with it.
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	results map[string]*Result
	state
}

// New opens the endpoint. The hub may enrol and connect once Run has been called.
func New(cfg Config) (*Check, error) {
	kept, err := readState(cfg.State)
	if err != nil {
		return nil, err
	}
	cfg = kept.complete(cfg).WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	hub, _ := domain.ParseSerial(cfg.Serial) // valid by Validate
	lines, err := linesNamed(cfg.Only)
	if err != nil {
		return nil, err
	}
	c := &Check{
		cfg: cfg, hub: hub, lines: lines, changed: make(chan struct{}),
		results: map[string]*Result{}, state: newState(),
	}
	c.inventory.hub = domain.HubState{
		ID: hub, Registered: true, SecretHash: domain.HashEnrolmentSecret(cfg.Secret),
	}
	if kept.Serial == cfg.Serial {
		c.inventory.former = kept.Certificates
	}
	for _, l := range lines {
		c.results[l.ID] = &Result{Line: l, Status: NotSeen}
	}
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open opens the authorities and the listeners.
func (c *Check) open() (err error) {
	if c.dir, err = os.MkdirTemp("", "hubcloud-hub-check-"); err != nil {
		return err
	}
	if err := c.newEnrolment(cmp.Or(c.cfg.State, c.dir)); err != nil {
		return err
	}
	if c.stranger, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: filepath.Join(c.dir, "stranger"), Hosts: []string{c.cfg.Host}, Logger: c.cfg.Logger,
	}); err != nil {
		return err
	}
	if c.http, err = net.Listen("tcp", c.bindAddress(c.cfg.HTTPPort)); err != nil {
		return &ConfigError{"http port", err.Error()}
	}
	if c.cfg.Certificate != nil {
		c.http = tls.NewListener(c.http, &tls.Config{
			Certificates: []tls.Certificate{*c.cfg.Certificate}, MinVersion: tls.VersionTLS12,
			CipherSuites: streams.CipherSuites(),
		})
	}
	if c.mqtt, err = net.Listen("tcp", c.bindAddress(c.cfg.MQTTPort)); err != nil {
		return &ConfigError{"mqtt port", err.Error()}
	}
	return c.saveState()
}

func (c *Check) bindAddress(port int) string {
	host := ""
	if ip := net.ParseIP(c.cfg.Host); c.cfg.Host == "localhost" || ip != nil && ip.IsLoopback() {
		host = c.cfg.Host
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// Close closes the endpoint of a Check that is not to be run. Run closes it at its end.
func (c *Check) Close() {
	for _, listener := range []net.Listener{c.http, c.mqtt} {
		if listener != nil {
			_ = listener.Close() // closed already if Run has ended
		}
	}
	_ = os.RemoveAll(c.dir) // a temporary folder
}

// Serial and Secret return what the hub is to be configured with.
func (c *Check) Serial() string { return c.hub.Serial() }

// Secret returns the enrolment secret.
func (c *Check) Secret() string { return c.cfg.Secret }

// EnrolURL returns the base URL of the enrolment, without /link/v1.
func (c *Check) EnrolURL() string {
	scheme := "http://"
	if c.cfg.Certificate != nil {
		scheme = "https://"
	}
	return scheme + c.address(c.http)
}

// BrokerURL returns the address of the MQTT endpoint, which the hub gets when it enrols.
func (c *Check) BrokerURL() string { return "mqtts://" + c.address(c.mqtt) }

func (c *Check) address(listener net.Listener) string {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return net.JoinHostPort(c.cfg.Host, port)
}

// Run checks the hub and returns the report. It returns once every line is decided or cannot be,
// after Config.Timeout, or when ctx ends. The error is the endpoint's.
func (c *Check) Run(ctx context.Context) (Report, error) {
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	mux := http.NewServeMux()
	mux.HandleFunc(enrolmentPath, c.serveEnrolment)
	mux.HandleFunc("/", c.serveUnknownPath)
	server := &http.Server{
		Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(c.cfg.Logger.Handler(), slog.LevelDebug),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(c.http); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error { return c.serveMQTT(ctx) })
	group.Go(func() error {
		defer cancel()
		c.runScript(ctx)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	err := group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	report := make(Report, 0, len(c.lines))
	for _, l := range c.lines {
		report = append(report, *c.results[l.ID])
	}
	return report, err
}

// notify wakes the script if it waits for a change. The caller holds the mutex.
func (c *Check) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits, without the mutex, until reached returns true. It returns false after limit or when
// ctx, the context of Run, ends. No line is decided after ctx has ended: what has not happened by
// then might have happened later. The caller holds the mutex.
func (c *Check) await(ctx context.Context, limit time.Duration, reached func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !reached() {
		changed, over := c.changed, false
		c.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		c.mu.Lock()
		if over {
			c.stopped = c.stopped || ctx.Err() != nil
			return false
		}
	}
	return true
}
