package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi/client"
)

// apiFlags select the API, and the key, of a command that is a client of the API.
type apiFlags struct {
	URL     string        `help:"Base URL of the API, such as https://api.example.com/v1. Defaults to the profile's, or else to the service on --data-dir." placeholder:"URL" name:"url"`
	Key     string        `help:"API key. Defaults to the key of the profile, or of the demo on --data-dir, for the URL that goes with it." env:"HUBCLOUD_API_KEY" placeholder:"KEY"`
	Profile string        `help:"Profile of \"hubcloud login\" to use. Defaults to the profile \"default\", if there is one and --data-dir is not given." placeholder:"NAME"`
	DataDir string        `help:"Data directory of a service on this machine. Defaults to ./data if there is no profile." type:"path" placeholder:"DIR"`
	Retry   time.Duration `help:"How long to retry while the service does not answer; 0 tries once." default:"5s"`
	outputFlags
}

// rejectsEmpty reports that the flags of the commands that are clients of the API must not be
// empty.
func (*apiFlags) rejectsEmpty() bool { return true }

// Validate checks the flags. The flag parser calls it.
func (c *apiFlags) Validate() error {
	if c.Retry < 0 {
		return fmt.Errorf("--retry %s: must not be negative", c.Retry)
	}
	if c.Profile != "" && c.DataDir != "" {
		return errors.New("--profile and --data-dir: give only one of them")
	}
	if c.Profile != "" {
		if err := checkProfileName(c.Profile); err != nil {
			return err
		}
	}
	if c.URL == "" {
		return nil
	}
	return checkURL(c.URL)
}

// checkURL checks the value of --url.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf(
			"--url %q: must be http://… or https://…, such as https://api.example.com/v1", text,
		)
	}
	return nil
}

// withVersion returns the API's base URL: with its version, and without a slash at the end.
func withVersion(base string) string {
	base = strings.TrimRight(base, "/")
	if base != "" && !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	return base
}

// open returns a client for the API at base. A nil pool stands for a pool of its own.
func (c *apiFlags) open(
	base, key string, pool *http.Client, logger *slog.Logger,
) (*client.Client, error) {
	retry := client.Retry{MaxElapsed: c.Retry, Except: []client.ErrorType{client.ErrHubOffline}}
	if c.Retry == 0 {
		retry.MaxElapsed = -1
	}
	api, err := client.New(client.Config{
		BaseURL: base, APIKey: key, UserAgent: installation.UserAgent(), Retry: retry,
		Logger: logger, HTTPClient: pool,
	})
	if err != nil {
		return nil, installation.AsUsage(err)
	}
	return api, nil
}

// baseAndKey returns the API's base URL and the key, which may be "". --url and --key win over the
// profile, and the profile over the service on the data directory, unless --data-dir is given. The
// keys of a profile and of the demo are never sent to another address than theirs.
func (c *apiFlags) baseAndKey() (base, key string, err error) {
	if base = withVersion(c.URL); base != "" {
		return base, c.Key, nil
	}
	base, key, err = c.profileOrService()
	return base, cmp.Or(c.Key, key), err
}

// profileOrService returns the base URL and the key of the profile, or else of the service on the
// data directory, whose key is empty unless it runs the demo.
func (c *apiFlags) profileOrService() (base, key string, err error) {
	if c.DataDir == "" {
		all, err := readProfiles()
		if err != nil {
			return "", "", installation.AsUsage(err)
		}
		name := cmp.Or(c.Profile, defaultProfile)
		found, err := all.find(name)
		switch {
		case err == nil && c.Key != "":
			return found.URL, c.Key, nil
		case err == nil:
			key, err = all.secret(name)
			return found.URL, key, err
		}
		if c.Profile != "" {
			return "", "", installation.AsUsage(err)
		}
	}
	dir := installation.Dir(cmp.Or(c.DataDir, "./data"))
	bound, err := dir.Endpoints()
	if err != nil {
		return "", "", fmt.Errorf(
			"%w, or the API with --url, or log in to it with `hubcloud login`", err,
		)
	}
	state, err := loadDemo(dir)
	base = installation.LocalURL(bound.HTTP) + "/v1"
	if bound.TLS { // the certificate is for the public name
		base = bound.PublicURL + "/v1"
	}
	return base, state.Key, err
}

// withClient runs a short command with a client: retries are not logged.
func (c *apiFlags) withClient(
	ctx context.Context, command func(api *client.Client) error,
) error {
	return c.withLogger(ctx, slog.New(slog.DiscardHandler), command)
}

// withLogger runs a command with a client that logs what it repeats. An invalid request, or one for
// something that does not exist, is a usage error.
func (c *apiFlags) withLogger(
	ctx context.Context, logger *slog.Logger, command func(api *client.Client) error,
) error {
	base, key, err := c.baseAndKey()
	if err != nil {
		return err
	}
	if key == "" {
		return installation.Usagef(
			"no API key: set HUBCLOUD_API_KEY, or give --key, which other users of this machine " +
				"can see, or store it with `hubcloud login`. `hubcloud key create` creates a key",
		)
	}
	api, err := c.open(base, key, nil, logger)
	if err != nil {
		return err
	}
	defer api.Close()
	err = command(api)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if errors.Is(err, client.ErrInvalidRequest) || errors.Is(err, client.ErrNotFound) {
		return installation.AsUsage(err)
	}
	return unanswered(base, err)
}

// unanswered returns an error in few words if it is about a connection: an address where nothing
// answers is the most common of all errors.
func unanswered(base string, err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	reason := failed.Err
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		reason = dial.Err
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			reason = call.Err
		}
	}
	return fmt.Errorf(
		"nothing answers at %s (%w): start a service with `hubcloud dev`, or name another with --url",
		base, reason,
	)
}

// listAll lists what a call of the API yields.
func listAll[T any](
	ctx context.Context, out Output, flags *apiFlags,
	call func(*client.Client, context.Context) iter.Seq2[T, error],
	header []string, cells func(T) []string,
) error {
	return flags.withClient(ctx, func(api *client.Client) error {
		return list(out.Out, flags.outputFlags, call(api, ctx), header, cells)
	})
}
