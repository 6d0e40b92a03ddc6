// SPDX-License-Identifier: GPL-2.0-or-later
// A method of a template, which runs for some time.
module places;
import core.volatile : volatileLoad, volatileStore;

__gshared uint total;

struct Inner(T)
{
    pragma(inline, false) void middle(T rounds)
    {
        foreach (i; 0 .. rounds)
            foreach (j; 0 .. 20_000)
                volatileStore(&total, volatileLoad(&total) + i);
    }
}

int main()
{
    Inner!uint inner;
    inner.middle(20_000);
    return 0;
}
