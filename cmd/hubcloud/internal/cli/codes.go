package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"hubcloud/httpapi/client"
)

// codesCommand manages the codes of locks.
type codesCommand struct {
	List   codesListCommand   `cmd:"" help:"List the codes of a lock."`
	Add    codesAddCommand    `cmd:"" help:"Give a lock a code, and print it."`
	Change codesChangeCommand `cmd:"" help:"Change the code, the label or the times of a slot."`
	Revoke codesRevokeCommand `cmd:"" help:"Revoke a code."`
}

// lockFlags are the key and the lock of a command.
type lockFlags struct {
	apiFlags
	Hub    string `arg:"" help:"Id or name of the hub." complete:"hub"`
	Device string `arg:"" help:"Id or name of the lock." complete:"device"`
}

// withLock calls do with the ids of the lock.
func (c *lockFlags) withLock(
	ctx context.Context, do func(api *client.Client, hub string, device int64) error,
) error {
	return c.withClient(ctx, func(api *client.Client) error {
		hub, device, err := deviceID(ctx, api, c.Hub, c.Device)
		if err != nil {
			return err
		}
		return do(api, hub, device)
	})
}

// codeFlags are when a code is valid.
type codeFlags struct {
	Code     string `help:"Digits of the code, 4 to 10. It stays in the history of the shell. Defaults to one that the service makes." placeholder:"DIGITS" env:"-"`
	From     string `help:"Time from which the code opens." placeholder:"TIME" env:"-"`
	Until    string `help:"Time until which the code opens." placeholder:"TIME" env:"-"`
	TimeZone string `help:"Time zone of times without an offset." placeholder:"NAME" env:"-"`
}

func (f codeFlags) request(label string) client.CredentialRequest {
	return client.CredentialRequest{
		Label: label, Code: f.Code, ValidFrom: f.From, ValidUntil: f.Until, TimeZone: f.TimeZone,
	}
}

// showCode prints what has become of a code, and the code if there is one to show.
func (c *lockFlags) showCode(out Output, code client.Credential, done string) error {
	text := fmt.Sprintf("Slot %d %s: %s.\n", code.Slot, done, code.State)
	if code.Code != "" {
		text += fmt.Sprintf("Code (shown only now): %s\n", code.Code)
	}
	return c.show(out.Out, code, "%s", text)
}

type codesListCommand struct{ lockFlags }

// Run lists the codes.
func (c *codesListCommand) Run(ctx context.Context, out Output) error {
	return c.withLock(ctx, func(api *client.Client, hub string, device int64) error {
		codes, err := api.Credentials(ctx, hub, device)
		if err != nil {
			return err
		}
		header := []string{"SLOT", "LABEL", "STATE", "FROM", "UNTIL", "TIMES"}
		return list(out.Out, c.outputFlags, each(codes.Data), header, func(
			code client.Credential,
		) []string {
			label, state := "(set at the lock)", code.State
			if code.Label != nil {
				label = *code.Label
			}
			if code.Message != nil {
				state += ": " + *code.Message
			}
			var times []string
			for _, t := range code.Schedule {
				times = append(times, strings.Join(t.Days, ",")+" "+t.From+"-"+t.Until)
			}
			return []string{
				strconv.FormatInt(code.Slot, 10), label, state, timeOrEmpty(code.ValidFrom),
				timeOrEmpty(code.ValidUntil), strings.Join(times, "; "),
			}
		})
	})
}

type codesAddCommand struct {
	lockFlags
	Label string `arg:"" help:"Whose code it is."`
	Slot  int64  `help:"Slot of the code in the lock. Defaults to the first that is free." placeholder:"N" env:"-"`
	codeFlags
}

// Run adds the code.
func (c *codesAddCommand) Run(ctx context.Context, out Output) error {
	return c.withLock(ctx, func(api *client.Client, hub string, device int64) error {
		request := c.request(c.Label)
		request.Slot = c.Slot
		code, err := api.CreateCredential(ctx, hub, device, request)
		if err != nil {
			return err
		}
		return c.showCode(out, code, "added")
	})
}

// slotFlags are the key, the lock and the slot of a command.
type slotFlags struct {
	lockFlags
	Slot int64 `arg:"" help:"Slot of the code in the lock."`
}

type codesChangeCommand struct {
	slotFlags
	Label string `help:"Whose code it is." placeholder:"TEXT" env:"-"`
	codeFlags
}

// Run changes the code.
func (c *codesChangeCommand) Run(ctx context.Context, out Output) error {
	return c.withLock(ctx, func(api *client.Client, hub string, device int64) error {
		code, err := api.UpdateCredential(ctx, hub, device, c.Slot, c.request(c.Label))
		if err != nil {
			return err
		}
		return c.showCode(out, code, "changed")
	})
}

type codesRevokeCommand struct{ slotFlags }

// Run revokes the code.
func (c *codesRevokeCommand) Run(ctx context.Context, out Output) error {
	return c.withLock(ctx, func(api *client.Client, hub string, device int64) error {
		if err := api.RevokeCredential(ctx, hub, device, c.Slot); err != nil {
			return err
		}
		return c.show(
			out.Out, map[string]any{"slot": c.Slot, "revoked": true},
			"Slot %d is revoked: the lock may accept its code until it has removed it.\n", c.Slot,
		)
	})
}
