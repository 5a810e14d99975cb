package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/build"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/demo"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/httpapi/client"
)

// apiFlags select the API, and the key, of a command that is a client of the API.
type apiFlags struct {
	URL     string        `help:"Base URL of the API, such as https://api.example.com/v1. Defaults to that of the service on --data-dir." placeholder:"URL" name:"url"`
	Key     string        `help:"API key. Without --url, defaults to the key of the demo on --data-dir." env:"HUBCLOUD_API_KEY" placeholder:"KEY"`
	DataDir string        `help:"Data directory of a service on this machine." default:"./data" type:"path"`
	Retry   time.Duration `help:"How long to retry while the service does not answer; 0 tries once." default:"5s"`
	outputFlags
}

// Validate checks the flags. The flag parser calls it.
func (c *apiFlags) Validate() error {
	if c.Retry < 0 {
		return fmt.Errorf("--retry %s: must not be negative", c.Retry)
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf(
			"--url %q: must be http://… or https://…, such as https://api.example.com/v1", c.URL,
		)
	}
	return nil
}

// open returns a client for the API at base.
func (c *apiFlags) open(base, key string, out Output) (*client.Client, error) {
	retry := client.Retry{MaxElapsed: c.Retry, Except: []client.ErrorType{client.ErrHubOffline}}
	if c.Retry == 0 {
		retry.MaxElapsed = -1
	}
	api, err := client.New(client.Config{
		BaseURL: base, APIKey: key, UserAgent: build.UserAgent(), Retry: retry,
		Logger: textLogger(out, slog.LevelWarn),
	})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	return api, nil
}

// baseAndKey returns the API's base URL and the key. The demo's key is used only for the service on
// the data directory, and never sent to the address of --url.
func (c *apiFlags) baseAndKey() (base, key string, err error) {
	dir := datadir.Dir(c.DataDir)
	base, key = strings.TrimRight(c.URL, "/"), c.Key
	if base != "" && !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	if base == "" {
		bound, err := dir.Endpoints()
		if err != nil {
			return "", "", fmt.Errorf("%w, or the API with --url", err)
		}
		base = address.LocalURL(bound.HTTP) + "/v1"
		if key == "" {
			state, err := demo.Load(dir)
			if err != nil {
				return "", "", err
			}
			key = state.Key
		}
	}
	if key == "" {
		return "", "", usage.Errorf(
			"no API key: set HUBCLOUD_API_KEY, or give --key, which other users of this machine " +
				"can see. `hubcloud key create` creates a key",
		)
	}
	return base, key, nil
}

// withClient runs a command with a client. An invalid request, or one for something that does not
// exist, is a usage error.
func (c *apiFlags) withClient(
	ctx context.Context, out Output, command func(api *client.Client) error,
) error {
	base, key, err := c.baseAndKey()
	if err != nil {
		return err
	}
	api, err := c.open(base, key, out)
	if err != nil {
		return err
	}
	defer api.Close()
	err = command(api)
	failed, ok := errors.AsType[*net.OpError](err)
	if ok && failed.Op == "dial" && ctx.Err() == nil {
		return fmt.Errorf(
			"nothing answers at %s: start a service with `hubcloud dev`, or name another with "+
				"--url: %w",
			base, failed.Err,
		)
	}
	if errors.Is(err, client.ErrInvalidRequest) || errors.Is(err, client.ErrNotFound) {
		return usage.Wrap(err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}
