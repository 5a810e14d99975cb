package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// maxKeyLine bounds the line with the key on standard input. It is far above any key.
const maxKeyLine = 4 << 10

// loginCommand stores the address of an API and a key in a profile.
type loginCommand struct {
	URL     string `help:"Base URL of the API, such as https://api.example.com/v1." required:"" placeholder:"URL" name:"url"`
	Profile string `help:"Name of the profile." default:"default" placeholder:"NAME"`
	KeyFile bool   `help:"Store the key in the file of the profiles, not in the system's key store."`
	outputFlags
}

// Validate checks the flags. The flag parser calls it.
func (c *loginCommand) Validate() error {
	if err := checkURL(c.URL); err != nil {
		return err
	}
	return checkProfileName(c.Profile)
}

// Run reads the key, tries it, and stores it.
func (c *loginCommand) Run(ctx context.Context, out Output) error {
	text, err := readKey(os.Stdin, out.Err)
	if err != nil {
		return err
	}
	key, err := domain.ParseKey(text)
	if err != nil {
		return installation.Usagef(
			"this is not an API key: it must be hc_<environment>_<key>, exactly as it was shown",
		)
	}
	flags := apiFlags{URL: c.URL, Key: text}
	err = flags.withClient(ctx, func(api *client.Client) error {
		_, err := api.HubsPage(ctx, "", client.PageQuery{Limit: 1})
		if errors.Is(err, client.ErrInsufficientScope) {
			return nil // the key is valid
		}
		return err
	})
	if err != nil {
		return err
	}
	all, err := readProfiles()
	if err != nil {
		return err
	}
	all.set(c.Profile, withVersion(c.URL), text, c.KeyFile)
	path, err := all.write()
	if err != nil {
		return err
	}
	return c.print(
		out.Out, field{"profile", c.Profile}, field{"url", withVersion(c.URL)},
		field{"key_id", key.ID}, field{"file", path},
	)
}

// readKey reads the key from the terminal without an echo, or the first line of other input.
func readKey(in *os.File, prompt io.Writer) (string, error) {
	if !term.IsTerminal(int(in.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(in, maxKeyLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the key from standard input: %w", err)
		}
		if line = strings.TrimSpace(line); line == "" {
			return "", installation.Usagef("no API key on standard input")
		}
		return line, nil
	}
	fmt.Fprint(prompt, "API key: ")
	text, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(prompt)
	if err != nil {
		return "", fmt.Errorf("read the key from the terminal: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// logoutCommand removes a profile.
type logoutCommand struct {
	Profile string `help:"Name of the profile." default:"default" placeholder:"NAME"`
	outputFlags
}

// Validate checks the flags. The flag parser calls it.
func (c *logoutCommand) Validate() error { return checkProfileName(c.Profile) }

// Run removes the profile. The key stays valid.
func (c *logoutCommand) Run(out Output) error {
	all, err := readProfiles()
	if err != nil {
		return err
	}
	found, err := all.find(c.Profile)
	if err != nil {
		return installation.AsUsage(err)
	}
	if err := all.remove(c.Profile); err != nil {
		return err
	}
	if _, err := all.write(); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintln(
			out.Err, "The key stays valid: `hubcloud key revoke` or the portal revokes it.",
		)
	}
	return c.print(
		out.Out, field{"profile", c.Profile}, field{"url", found.URL},
		field{"key_id", found.KeyID},
	)
}

// profilesCommand lists the profiles.
type profilesCommand struct {
	outputFlags
}

// profileJSON is a profile with --json. It has no secret.
type profileJSON struct {
	Profile string `json:"profile"`
	URL     string `json:"url"`
	KeyID   string `json:"key_id"`
}

// Run prints the profiles, without their keys.
func (c *profilesCommand) Run(out Output) error {
	all, err := readProfiles()
	if err != nil {
		return err
	}
	lines := make([]profileJSON, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, profileJSON{name, all[name].URL, all[name].KeyID})
	}
	header := []string{"PROFILE", "URL", "KEY"}
	return list(out.Out, c.outputFlags, each(lines), header, func(p profileJSON) []string {
		return []string{p.Profile, p.URL, p.KeyID}
	})
}

// keyIDOf returns the id of a key, which is not secret.
func keyIDOf(text string) string {
	key, err := domain.ParseKey(text)
	if err != nil {
		return ""
	}
	return key.ID
}
