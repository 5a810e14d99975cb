package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/demo"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/httpapi/client"
)

// consumer is what the commands have in common that use the API as any of its consumers does, with
// an API key.
type consumer struct {
	URL     string        `help:"Base address of the API, such as https://api.example.com/v1; that of the service on --data-dir when not given." placeholder:"URL" name:"url"`
	Key     string        `help:"API key; that of the demo on --data-dir when neither --url nor this is given." env:"HUBCLOUD_API_KEY" placeholder:"KEY"`
	DataDir string        `help:"Data directory of a service that runs on this machine." default:"./data" type:"path"`
	Retry   time.Duration `help:"How long to go on trying while the service does not answer; 0 tries once." default:"5s"`
	outputFlags
}

// Validate checks what the flags say; kong calls it once they are parsed.
func (c *consumer) Validate() error {
	if c.Retry < 0 {
		return fmt.Errorf("--retry %s: must not be negative", c.Retry)
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf(
			"--url %q: must be http://… or https://…, such as https://api.example.com/v1", c.URL,
		)
	}
	return nil
}

// open makes the client of a command.
func (c *consumer) open(base, key string, out Streams) (*client.Client, error) {
	retry := client.Retry{MaxElapsed: c.Retry, Except: []client.ErrorType{client.ErrHubOffline}}
	if c.Retry == 0 {
		retry.MaxElapsed = -1
	}
	api, err := client.New(client.Config{
		BaseURL: base, APIKey: key, UserAgent: "hubcloud", Retry: retry,
		Log: slog.New(slog.NewTextHandler(out.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	return api, nil
}

// where finds the API and the key to it. The demo's key goes to the demo alone, never to an address
// that was given.
func (c *consumer) where() (base, key string, err error) {
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
			"no API key: give --key, or better HUBCLOUD_API_KEY, which other users of this " +
				"machine do not see. `hubcloud key create` makes one",
		)
	}
	return base, key, nil
}

// do runs a consumer's command. What the API finds wrong about what was asked is the mistake of who
// typed it.
func (c *consumer) do(
	ctx context.Context, out Streams, command func(api *client.Client) error,
) error {
	base, key, err := c.where()
	if err != nil {
		return err
	}
	api, err := c.open(base, key, out)
	if err != nil {
		return err
	}
	defer api.Close()
	err = command(api)
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" &&
		ctx.Err() == nil {
		return fmt.Errorf(
			"nothing answers at %s: start a service with `hubcloud dev`, or name another with --url: %w",
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

// printJSON writes one object on a line of its own.
func printJSON(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// table writes rows for people, in columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row; what is empty shows as a dash. A control character, such as one in a name, does
// not reach the terminal.
func (t table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = printable(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// printable replaces control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, text)
}

// orNothing gives a text that may be absent.
func orNothing(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// shortTime writes a time for people: to the second, in UTC.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
