package rpc

import (
	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// CallLimits bound the calls in flight at one replica. A hub that does not answer keeps each call in
// flight until its timeout.
var CallLimits = shares.Limits{Total: 16_384, PerOrg: 2_048, PerID: 256}

// NewCallPool returns the bound of the calls in flight: commands, live calls for devices, and
// requests that wait for the same command.
func NewCallPool(registry *shares.Registry, limits shares.Limits) *shares.Pool {
	return shares.NewPool(registry, shares.PoolConfig{
		Name: "calls_to_hubs", What: "commands and live calls are in flight", Of: "hub",
		Limits: limits,
	})
}

// CallTo returns the spender of a call to a hub of an organization.
func CallTo(org string, hub domain.HubID) shares.Spender {
	return shares.Spender{Org: org, ID: string(hub)}
}
