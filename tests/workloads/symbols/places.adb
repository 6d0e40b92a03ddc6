--  SPDX-License-Identifier: GPL-2.0-or-later
--  Functions of a package inside of a procedure, one inside of another, which run for some time.
procedure Places is
   Total : Long_Long_Integer := 0;
   pragma Volatile (Total);

   package Inner is
      procedure Middle (Rounds : Integer);
   end Inner;

   package body Inner is
      procedure Middle (Rounds : Integer) is
         procedure Deep (Step : Integer) is
         begin
            for I in 1 .. 20_000 loop
               Total := Total + Long_Long_Integer (Step);
            end loop;
         end Deep;
      begin
         for I in 1 .. Rounds loop
            Deep (I);
         end loop;
      end Middle;
   end Inner;
begin
   Inner.Middle (20_000);
end Places;
