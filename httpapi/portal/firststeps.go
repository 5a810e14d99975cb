package portal

// firstStep is a step of setting up a new organization.
type firstStep struct {
	Title, Text string
	// Address is the address of the step's page, relative to the organization's.
	Address string
	Done    bool
}

// firstSteps returns the steps of setting up the organization; nil once it has a site and a hub, or
// for members who cannot do them.
func (req *request) firstSteps(sites, hubs int) ([]firstStep, error) {
	if !req.member.Manages() || sites > 0 && hubs > 0 {
		return nil, nil
	}
	members, err := req.ReadModels.FindMembers(req.ctx, req.org, "", 2, "")
	if err != nil {
		return nil, err
	}
	invited, err := req.ReadModels.Invitations(req.ctx, req.org, 1, "", req.info.At)
	if err != nil {
		return nil, err
	}
	keys, err := req.ReadModels.Keys(req.ctx, req.org, 1, "")
	if err != nil {
		return nil, err
	}
	return []firstStep{
		{"Create a site", "A site is a building or a part of one.", "sites#site-name", sites > 0},
		{"Add a hub", "Connect it to power and network first.", "sites#serial", hubs > 0},
		{
			"Invite your colleagues", "They get a link by mail.", "members#email",
			len(members.Data) > 1 || len(invited.Data) > 0,
		},
		{
			"Create an API key", "Only if programs of yours use the API.", "keys#label",
			len(keys.Data) > 0,
		},
	}, nil
}
