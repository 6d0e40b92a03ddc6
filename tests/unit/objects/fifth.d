// SPDX-License-Identifier: GPL-2.0-or-later
module fifth;
import std.algorithm : map, sum;
import std.stdio : writeln;

struct Pair(T)
{
    T first, second;
    pragma(inline, true) T both() const { return first * 3 + second; }
}

pragma(inline, true) private int twist(int x)
{
    foreach (i; 0 .. 3)
        x ^= x << (i + 1);
    return x;
}

int calls(int[] numbers)
{
    int total;
    foreach (n; numbers)
    {
        auto pair = Pair!int(n, twist(n));
        if (pair.both > 100)
            total += twist(pair.both);
        else
            total -= pair.first;
    }
    return total;
}

class Shape
{
    abstract double area() const;
}

class Circle : Shape
{
    double radius;
    this(double r) { radius = r; }
    override double area() const { return 3.14 * radius * radius; }
}

int closures(int n)
{
    auto add = (int x) => x + twist(n);
    return add(n) + add(n + 1);
}

int main(string[] arguments)
{
    int[] numbers;
    foreach (i; 0 .. 10)
        numbers ~= twist(i) + cast(int) arguments.length;
    Shape shape = new Circle(numbers[2]);
    writeln(calls(numbers), closures(numbers[3]), shape.area, numbers.map!(a => twist(a)).sum);
    return 0;
}
